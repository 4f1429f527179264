"""Whatever ends a run, its summary is written and its sinks are finished."""

from __future__ import annotations

import json
from unittest import mock

import pytest

from ppframe.errors import InternalError
from ppframe.metrics import RunInfo, Sink
from ppframe.training import recorder as recorder_module
from ppframe.training.interrupt import Terminated
from ppframe.training.recorder import RunRecorder
from ppframe.training.summary import write_summary
from tests.training.toy import MemorySink


def read(run_dir) -> dict[str, object]:
    return json.loads((run_dir / "summary.json").read_text())


def test_a_finished_run_has_its_facts_in_the_summary(tmp_path):
    sink = MemorySink()
    with RunRecorder(RunInfo(run_dir=tmp_path, job_type="eval"), [sink]) as recorder:
        recorder.start(None, lambda: {"steps": 3, "final_loss": 0.5})
    summary = read(tmp_path)
    assert summary == sink.summary == recorder.summary.as_dict()
    expected = {"status": "finished", "mode": "eval", "steps": 3, "final_loss": 0.5, "error": None}
    assert expected.items() <= summary.items()
    assert summary["run_dir"] == str(tmp_path)
    assert summary["wall_s"] > 0
    assert sink.exit_code == 0


@pytest.mark.parametrize(
    ("error", "status", "exit_code", "text"),
    [
        (ValueError("no data"), "failed", 1, "ValueError: no data"),
        (KeyboardInterrupt(), "interrupted", 130, "KeyboardInterrupt"),
        (Terminated(), "interrupted", 143, "Terminated"),
        (SystemExit(3), "failed", 1, "SystemExit: 3"),
    ],
)
def test_an_error_is_in_the_summary_and_goes_on(tmp_path, error, status, exit_code, text):
    sink = MemorySink()

    def run() -> None:
        with RunRecorder(RunInfo(run_dir=tmp_path), [sink]) as recorder:
            recorder.start(None, dict)
            raise error

    with pytest.raises(type(error)) as caught:
        run()
    assert caught.value is error
    summary = read(tmp_path)
    assert (summary["status"], summary["exit_code"], summary["error"]) == (status, exit_code, text)
    assert sink.exit_code == exit_code


def test_signals_that_keep_coming_while_it_closes_make_no_false_summary(tmp_path):
    sink = MemorySink()
    outcomes = iter([KeyboardInterrupt(), KeyboardInterrupt(), None])

    def written(summary):
        if (signal := next(outcomes)) is not None:
            raise signal
        write_summary(summary)

    def run() -> None:
        with RunRecorder(RunInfo(run_dir=tmp_path), [sink]) as recorder:
            recorder.start(None, lambda: {"steps": 10, "final_loss": 0.5})
            raise KeyboardInterrupt

    with (
        mock.patch.object(recorder_module, "write_summary", written),
        pytest.raises(KeyboardInterrupt),
    ):
        run()
    summary = read(tmp_path)
    assert (summary["steps"], summary["status"]) == (10, "interrupted")
    assert summary == sink.summary


def test_a_failure_before_the_sinks_start_leaves_a_summary_too(tmp_path):
    with pytest.raises(ValueError, match="build"), RunRecorder(RunInfo(run_dir=tmp_path)):
        raise ValueError("build")
    assert read(tmp_path)["status"] == "failed"


class Broken(Sink):
    """Fails at the end, and at the start if asked to."""

    def __init__(self, *, at_start: bool = False) -> None:
        self.at_start = at_start

    def start(self, run):
        if self.at_start:
            raise OSError("no server")

    def log(self, metrics, step):
        pass

    def text(self, name, text):
        pass

    def finish(self, summary, exit_code):
        raise OSError("no disk")


def test_a_broken_sink_keeps_neither_the_summary_nor_the_others_back(tmp_path):
    sink = MemorySink()
    recorder = RunRecorder(RunInfo(run_dir=tmp_path), [Broken(), sink])
    with pytest.raises(OSError, match="no disk"), recorder:
        recorder.start(None, dict)
    assert read(tmp_path)["status"] == "finished"
    assert sink.exit_code == 0


def test_an_error_while_closing_is_a_note_of_the_first_error(tmp_path):
    recorder = RunRecorder(RunInfo(run_dir=tmp_path), [Broken(at_start=True)])
    with pytest.raises(OSError, match="no server") as caught, recorder:
        recorder.start(None, dict)
    assert "no disk" in caught.value.__notes__[0]


def test_there_is_no_summary_before_the_end(tmp_path):
    with pytest.raises(InternalError):
        _ = RunRecorder(RunInfo(run_dir=tmp_path)).summary
