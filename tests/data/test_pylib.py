from __future__ import annotations

import logging
import sysconfig
import time
from pathlib import Path

import pytest

from ppframe.data.pylib import pylib, read_library
from ppframe.errors import ConfigError
from ppframe.registry import builder


def library(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


def test_the_running_pythons_library_is_read_within_two_seconds():
    start = time.perf_counter()
    data = pylib(seq_len=64)
    assert time.perf_counter() - start < 2.0
    assert 2.0 < data.unigram_entropy < 4.0
    assert data.describe().startswith("standard library of Python 3.")
    assert next(data.train_batches(2, 0)).inputs.shape == (2, 64)


def test_it_is_registered():
    assert builder("data", "pylib") is pylib


def test_what_is_read_are_the_library_files_themselves():
    root = Path(sysconfig.get_paths()["stdlib"])
    documents = read_library(root, max_bytes=1_000_000)
    assert 0 < sum(map(len, documents.values())) <= 1_000_000
    for name in list(documents)[:5]:
        assert documents[name] == (root / name).read_bytes().replace(b"\r\n", b"\n")


def test_tests_and_installed_packages_are_left_out(tmp_path):
    root = library(
        tmp_path, a="1", pkg__b="2", test__c="3", pkg__tests__d="4", site_packages__e="5"
    )
    (root / "site_packages").rename(root / "site-packages")
    (root / "notes.txt").write_text("no source")
    assert read_library(root, max_bytes=100) == {"a.py": b"1", "pkg/b.py": b"2"}


def test_fewer_bytes_are_the_first_files_of_the_same_order(tmp_path):
    root = library(tmp_path, **{f"file{number}": "x" * 10 for number in range(20)})
    everything = list(read_library(root, max_bytes=10_000))
    assert list(read_library(root, max_bytes=75)) == everything[:7]


def test_line_ends_become_newlines(tmp_path):
    root = library(tmp_path, a="x\r\ny\n", b="")
    assert read_library(root, max_bytes=100)["a.py"] == b"x\ny\n"


def test_files_that_cannot_be_read_are_left_out_with_one_warning(tmp_path, caplog):
    root = library(tmp_path, a="1", b="2")
    for name in ("gone", "lost"):
        (root / f"{name}.py").symlink_to(root / f"no_{name}.txt")
    with caplog.at_level(logging.WARNING):
        assert sorted(read_library(root, max_bytes=100)) == ["a.py", "b.py"]
    assert len(caplog.records) == 1
    assert "2 files left out" in caplog.text


@pytest.mark.parametrize("folder", ["empty", "python311.zip", "missing"])
def test_a_python_without_source_is_refused_with_what_to_do(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    (tmp_path / "python311.zip").write_bytes(b"PK")
    with pytest.raises(ConfigError, match=r"but finds 0 under .*use `data=text") as caught:
        read_library(tmp_path / folder, max_bytes=100)
    assert caught.value.path == "data"


def test_a_limit_below_one_byte_is_refused():
    with pytest.raises(ConfigError, match=r"data.max_bytes: must be at least 1, but is 0"):
        pylib(seq_len=8, max_bytes=0)
