"""Files are there as a whole or not at all."""

from __future__ import annotations

import pytest

from ppframe.training.files import write_text, write_whole


def test_a_file_is_written_with_its_folder(tmp_path):
    write_text(tmp_path / "new" / "file.txt", "çontent\n")
    assert (tmp_path / "new" / "file.txt").read_text(encoding="utf-8") == "çontent\n"
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["file.txt"]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, error):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(file):
        file.write(b"half")
        raise error

    with pytest.raises(type(error)):
        write_whole(path, write)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_and_not_its_draft(tmp_path):
    def write(file):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space") as caught:
        write_whole(tmp_path / "file.txt", write)
    assert caught.value.filename == str(tmp_path / "file.txt")
