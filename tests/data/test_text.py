from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
import torch

from ppframe.data.text import text
from ppframe.errors import ConfigError
from ppframe.registry import builder


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    for number in range(6):
        (tmp_path / f"note{number}.txt").write_bytes(bytes([97 + number]) * 40)
    (tmp_path / "deep" / "note.txt").write_bytes(b"z" * 40)
    (tmp_path / "one.bin").write_bytes(bytes(range(100)))
    return tmp_path


def alphabet(tokens: torch.Tensor) -> set[str]:
    return {chr(byte) for byte in tokens.unique()} - {"\n"}


def letters(data) -> tuple[set[str], set[str]]:
    """Letters of the training text and of the validation text."""
    train = torch.cat([batch.inputs for batch in islice(data.train_batches(64, 0), 4)])
    validation = torch.cat([batch.inputs for batch in data.validation_batches(64, 4)])
    return alphabet(train), alphabet(validation)


def test_it_is_registered():
    assert builder("data", "text") is text


def test_a_single_file_is_split_by_position(notes):
    data = text(path="one.bin", seq_len=5, base_folder=str(notes), validation_fraction=0.2)
    first, *_, last = data.validation_batches(1, 16)
    assert first.inputs[0, 0] == 80
    assert last.targets[0, -1] == 99
    assert max(batch.targets.max() for batch in islice(data.train_batches(32, 0), 8)) == 79


def test_several_files_are_split_by_file(notes):
    data = text(path="*.txt", seq_len=8, base_folder=str(notes), validation_fraction=0.3)
    train, validation = letters(data)
    assert len(validation) == 2
    assert train | validation == set("abcdef")
    assert not train & validation
    assert "*.txt (6 files)" in data.describe()


def test_the_split_stays_when_the_folder_moves(notes, tmp_path_factory):
    here = letters(text(path="note*.txt", seq_len=8, base_folder=str(notes)))
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "moved"
    notes.rename(elsewhere)
    assert letters(text(path="note*.txt", seq_len=8, base_folder=str(elsewhere))) == here


def test_stars_cross_folders_and_patterns_add_up_without_doubles(notes):
    base = str(notes)
    data = text(path="**/*.txt", seq_len=8, base_folder=base)
    assert set.union(*letters(data)) == set("abcdefz")
    data = text(path=["note0.txt", "note[01].txt"], seq_len=8, base_folder=base)
    assert "(2 files)" in data.describe()


def test_absolute_paths_and_the_home_folder_need_no_base(notes, monkeypatch):
    monkeypatch.setenv("HOME", str(notes))
    for path in (str(notes / "one.bin"), "~/one.bin", "~/one.*"):
        assert (
            text(path=path, seq_len=5).describe()
            == text(path=path, seq_len=5, base_folder="/nowhere").describe()
        )


def test_relative_paths_start_from_the_current_folder_without_a_base(notes, monkeypatch):
    monkeypatch.chdir(notes)
    assert text(path="one.bin", seq_len=5).tokens_per_sample == 5


def test_brackets_in_names_and_folders_that_exist_are_no_pattern(tmp_path):
    folder = tmp_path / "run [1]"
    folder.mkdir()
    (folder / "a[b].txt").write_bytes(b"0123456789" * 10)
    for path in ("a[b].txt", "*.txt"):
        assert text(path=path, seq_len=5, base_folder=str(folder)).tokens_per_sample == 5


@pytest.mark.parametrize(
    ("path", "phrase"),
    [
        ("missing.txt", "at least one file, but `missing.txt` matches none"),
        ("*.md", "matches none"),
        ("deep", r"but `deep` is a folder .*`deep/\*\*/\*.txt`"),
        (["note0.txt", "*.md"], r"`\*.md` matches none"),
        ([], "at least one file, but the list of paths is empty"),
    ],
)
def test_a_path_that_names_no_file_is_refused(notes, path, phrase):
    with pytest.raises(ConfigError, match=phrase) as caught:
        text(path=path, seq_len=8, base_folder=str(notes))
    assert caught.value.path == "data.path"


def test_a_file_that_cannot_be_read_is_named(notes, monkeypatch):
    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match=r"one.bin can't be read \(Permission denied\)"):
        text(path="one.bin", seq_len=5, base_folder=str(notes))


def test_too_short_a_file_is_refused_with_its_name(notes):
    with pytest.raises(ConfigError, match=r"validation text of 10 bytes, from one.bin"):
        text(path="one.bin", seq_len=10, base_folder=str(notes))
