"""A terminal gets a bar, everything else gets lines."""

from __future__ import annotations

import io
import logging
import sys

import pytest
from rich.console import Console

from ppframe.errors import ConfigError
from ppframe.metrics import LineSink, RunInfo, TerminalSink
from ppframe.registry import builder
from tests.metrics.runs import make_run


class TerminalStream(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_there_are_lines_only(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert isinstance(builder("logger", "console")(), LineSink)


def test_a_terminal_gets_the_bar_unless_it_is_dumb(monkeypatch):
    monkeypatch.setattr(sys, "stdout", TerminalStream())
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(builder("logger", "console")(), TerminalSink)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(builder("logger", "console")(), LineSink)


def test_closed_stdout_is_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert isinstance(builder("logger", "console")(), LineSink)


def test_lines_come_at_the_first_every_nth_and_the_last_step_and_at_evaluations(tmp_path, caplog):
    sink = LineSink(every_steps=10)
    with caplog.at_level(logging.INFO):
        sink.start(make_run(tmp_path))
        caplog.clear()
        for step in range(1, 21):
            sink.log({"train/loss": 1.0} | ({"val/loss": 2.0} if step == 13 else {}), step)
    steps = [record.getMessage().split("/")[0] for record in caplog.records]
    assert steps == ["step 1", "step 10", "step 13", "step 20"]
    assert " left" in caplog.records[1].getMessage()
    assert " left" not in caplog.records[3].getMessage()


def test_plan_and_summary_are_logged_and_a_failure_is_an_error(tmp_path, caplog):
    sink = LineSink(every_steps=10)
    with caplog.at_level(logging.INFO):
        sink.start(make_run(tmp_path))
        sink.finish({"status": "failed"}, 1)
    assert "predicted bubble 50.0%" in caplog.messages[0]
    assert caplog.messages[-1] == "summary: status failed"
    assert caplog.records[-1].levelno == logging.ERROR


def make_terminal() -> tuple[TerminalSink, TerminalStream]:
    stream = TerminalStream()
    screen = Console(file=stream, force_terminal=True, width=120, legacy_windows=False)
    return TerminalSink(screen), stream


def test_the_terminal_shows_plan_numbers_text_and_summary(tmp_path):
    sink, stream = make_terminal()
    sink.start(make_run(tmp_path))
    sink.log({"train/loss": 1.2345, "train/lr": 1e-3, "val/loss": 2.5}, 20)
    sink.text("sample", "[bold]as it is[/]")
    sink.finish({"status": "finished", "final_loss": 1.2345}, 0)
    shown = stream.getvalue()
    for part in ("predicted bubble", "rank 1", "1.2345", "20/20", "[bold]as it is[/]", "finished"):
        assert part in shown


def test_log_lines_go_above_the_bar_and_handlers_come_back(tmp_path, monkeypatch):
    sink, _ = make_terminal()
    handler = logging.StreamHandler(sys.stdout)
    file_handler = logging.FileHandler(tmp_path / "launch.log")
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [handler, file_handler])
    before = (sys.stdout, handler.stream, file_handler.stream)
    sink.start(make_run(tmp_path))
    assert handler.stream is sys.stdout is not before[0]
    assert file_handler.stream is before[2]
    sink.finish({}, 0)
    assert (sys.stdout, handler.stream, file_handler.stream) == before
    file_handler.close()


def test_without_steps_there_is_no_bar(tmp_path):
    sink, stream = make_terminal()
    sink.start(RunInfo(run_dir=tmp_path))
    assert stream.getvalue() == ""
    sink.finish({}, 0)


def test_a_pause_of_no_steps_is_refused():
    with pytest.raises(ConfigError) as caught:
        builder("logger", "console")(every_steps=0)
    assert caught.value.path == "logger.console.every_steps"
