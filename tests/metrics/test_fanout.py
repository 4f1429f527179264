"""Several sinks as one: in order, and all of them finished."""

from __future__ import annotations

from typing import Any

import pytest

from ppframe.metrics import Fanout, RunInfo, Sink


class Notebook(Sink):
    def __init__(self, name: str, notes: list[tuple[Any, ...]], fault: Exception | None = None):
        self.name, self.notes, self.fault = name, notes, fault

    def start(self, run):
        self.notes.append((self.name, "start"))

    def log(self, metrics, step):
        self.notes.append((self.name, dict(metrics), step))

    def text(self, name, text):
        self.notes.append((self.name, name, text))

    def page(self, name, page):
        self.notes.append((self.name, name, page))

    def finish(self, summary, exit_code):
        self.notes.append((self.name, "finish", exit_code))
        if self.fault is not None:
            raise self.fault


def test_every_sink_gets_everything_in_order(tmp_path):
    notes: list[tuple[Any, ...]] = []
    sinks = Fanout([Notebook("a", notes), Notebook("b", notes)])
    sinks.start(RunInfo(run_dir=tmp_path))
    sinks.log({"x": 1.0}, 3)
    sinks.text("sample", "abc")
    sinks.finish({}, 0)
    calls = [("start",), ({"x": 1.0}, 3), ("sample", "abc"), ("finish", 0)]
    assert notes == [(name, *call) for call in calls for name in "ab"]


def test_a_sink_that_fails_to_finish_keeps_no_other_open():
    notes: list[tuple[Any, ...]] = []
    sinks = Fanout([Notebook("a", notes, OSError("full")), Notebook("b", notes)])
    with pytest.raises(OSError, match="full"):
        sinks.finish({}, 1)
    assert notes == [("a", "finish", 1), ("b", "finish", 1)]
