"""`metrics.jsonl` is valid line by line, at any moment."""

from __future__ import annotations

import json
import math

import pytest

from ppframe.metrics import JsonlSink, RunInfo, to_json


def strict(line: str) -> dict[str, object]:
    def refuse(name: str) -> None:
        pytest.fail(f"{name} is no JSON")

    return json.loads(line, parse_constant=refuse)


def test_each_row_is_on_disk_as_soon_as_it_is_logged(tmp_path):
    sink = JsonlSink()
    sink.start(RunInfo(run_dir=tmp_path))
    sink.log({"train/loss": 0.5, "time/step_s": 1.0}, 1)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    sink.log({"train/loss": 0.25}, 2)
    assert lines == ['{"step": 1, "train/loss": 0.5, "time/step_s": 1.0}']
    sink.finish({}, 0)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2


def test_numbers_that_json_has_not_are_text_that_float_reads(tmp_path):
    sink = JsonlSink()
    sink.start(RunInfo(run_dir=tmp_path))
    sink.log({"a": math.nan, "b": math.inf, "c": -math.inf}, 1)
    sink.finish({}, 0)
    row = strict((tmp_path / "metrics.jsonl").read_text())
    assert math.isnan(float(row["a"]))
    assert (float(row["b"]), float(row["c"])) == (math.inf, -math.inf)


def test_finish_without_start_is_harmless():
    JsonlSink().finish({}, 1)


def test_nested_values_become_json(tmp_path):
    value = {"a": [1, (2, math.nan)], "path": tmp_path, "none": None, 3: True}
    assert strict(to_json(value)) == {
        "a": [1, [2, "NaN"]],
        "path": str(tmp_path),
        "none": None,
        "3": True,
    }


def test_a_row_without_room_names_the_file(tmp_path):
    sink = JsonlSink()
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    sink.start(RunInfo(run_dir=tmp_path))
    with pytest.raises(OSError, match="No space left") as caught:
        sink.log({"train/loss": 0.5}, 1)
    assert caught.value.filename == str(tmp_path / "metrics.jsonl")
    with pytest.raises(OSError, match="No space left"):
        sink.finish({}, 1)  # what could not be written is tried once more
