"""How a job ends that can't write its files."""

from __future__ import annotations

import errno
from pathlib import Path
from unittest import mock

import pytest

from ppframe.cli import outcome
from ppframe.cli.outcome import run_to_end
from ppframe.config import Launch
from ppframe.training.files import naming

FULL = OSError(errno.ENOSPC, "No space left on device")


def ended(tmp_path: Path, *, error: BaseException) -> outcome.Outcome:
    """A job that ends with an error on a disk that has no room for its summary."""
    launch = Launch(folder=tmp_path, run_dir=tmp_path)
    with (
        mock.patch.object(outcome, "load_config", side_effect=error),
        mock.patch.object(outcome, "write_summary", side_effect=FULL),
    ):
        return run_to_end({"mode": "train"}, launch)


def test_a_full_disk_is_told_in_a_line_that_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError, match="No space") as caught, naming(tmp_path / "config.yaml"):
        raise OSError(errno.ENOSPC, "No space left on device")
    end = ended(tmp_path, error=caught.value)
    told = capsys.readouterr().err
    assert (end.exit_code, end.summary["status"]) == (1, "failed")
    assert f"{tmp_path}/config.yaml must be written" in told
    assert told.count("\n") == 1


def test_another_error_and_a_summary_without_room_are_both_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end = ended(tmp_path, error=KeyboardInterrupt())
    told = capsys.readouterr().err.splitlines()
    assert end.exit_code == 130
    assert told[0] == "Stopped by a signal."
    assert f"a file in {tmp_path} must be written" in told[1]
