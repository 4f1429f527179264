"""Folders: configuration to read, and run directories that nobody else gets."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from ppframe.cli.folders import (
    bounded,
    bounded_interpolation,
    bounded_name,
    claim_folder,
    conf_folder,
    hidden_files,
    own_conf_folder,
    register_bounds,
    writable_folder,
)
from ppframe.errors import ConfigError


def test_launches_in_the_same_second_get_different_folders(tmp_path: Path) -> None:
    wanted = tmp_path / "outputs" / "2030-01-01" / "12-00-00"
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: claim_folder(wanted), range(16)))
    assert len(set(folders)) == 16
    assert all(folder.is_dir() for folder in folders)
    assert {wanted, wanted.with_name("12-00-00-2")} <= set(folders)


@pytest.mark.parametrize("impossible", ["a_file", "a_file/below", "/proc/no/folder"])
def test_a_folder_that_cannot_be_made_is_a_fault_of_one_line(
    impossible: str, tmp_path: Path
) -> None:
    (tmp_path / "a_file").touch()
    with pytest.raises(ConfigError, match="must be one that can be made") as caught:
        writable_folder(tmp_path / impossible)
    assert str(tmp_path / impossible) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="must be one that can be made"):
        claim_folder(tmp_path / impossible / "run")


def test_a_folder_without_room_is_a_fault_and_trying_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert writable_folder(tmp_path) == tmp_path
    assert list(tmp_path.iterdir()) == []

    def full(path: Path, _: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ConfigError, match="No space left on device"):
        writable_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=50)
@given(st.text(min_size=1, max_size=400).filter(lambda text: "/" not in text and "\0" not in text))
def test_a_folder_name_is_bounded(name: str) -> None:
    assert len(bounded_name(name).encode("utf-8", "surrogatepass")) <= 120


def test_long_names_that_differ_at_the_end_stay_different() -> None:
    assert bounded_name("x" * 300 + "a") != bounded_name("x" * 300 + "b")
    assert bounded_name("short") == "short"


def test_each_name_of_a_path_is_bounded_by_itself(tmp_path: Path) -> None:
    path = bounded(tmp_path / ("x" * 300) / "y" / ("z" * 300))
    path.mkdir(parents=True)
    assert path.parent.name == "y"


def test_folders_of_jobs_are_bounded_when_they_are_resolved() -> None:
    register_bounds()
    overrides = "a=" + "x" * 300 + ",b=1/2"
    config = OmegaConf.create(
        {"dirname": overrides, "subdir": bounded_interpolation("job,${dirname}")}
    )
    subdir = Path(config.subdir)
    assert len(subdir.parts[0]) <= 120
    assert subdir.parts[0].startswith("job,a=xxx")
    assert subdir.name == "2"


def test_the_repository_has_the_configuration_of_the_package() -> None:
    assert (conf_folder() / "config.yaml").is_file()


def test_own_configuration_is_that_of_the_launch_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_conf_folder(tmp_path) is None
    (tmp_path / "conf").mkdir()
    assert own_conf_folder(tmp_path) == tmp_path / "conf"
    monkeypatch.chdir(conf_folder().parent)
    assert own_conf_folder(Path.cwd()) is None


def test_own_files_that_the_package_hides_are_named(tmp_path: Path) -> None:
    mine = tmp_path / "conf" / "loss"
    mine.mkdir(parents=True)
    (mine / "mse.yaml").write_text("name: mse\nscale: 2\n")
    (mine / "other.yaml").write_text("name: mse\n")
    assert hidden_files(tmp_path) == [mine / "mse.yaml"]
