"""Texts for people."""

from __future__ import annotations

import dataclasses
import io
import math

import pytest
from rich.console import Console

from ppframe.metrics import tables
from tests.metrics.runs import make_plan


def test_the_plan_has_a_line_for_the_whole_each_rank_and_the_data():
    assert tables.plan_lines(make_plan()) == [
        "gpipe: 2 ranks, 2 stages, 1 microbatches of a batch of 4, 1,230 parameters, "
        "predicted bubble 50.0%",
        "rank 0 (cpu): stage 0 (0..1), 1,200 parameters; weights and gradients 9.4 KiB, "
        "at most 1 in flight",
        "rank 1 (cpu): stage 1 (2), 30 parameters; weights and gradients 240 B, "
        "at most 1 in flight",
        "data: two files; unigram entropy 3.250 nats",
    ]


def test_the_table_shows_what_the_lines_say():
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(tables.plan_table(make_plan()))
    shown = console.export_text()
    console.file.close()
    for text in ("predicted bubble 50.0%", "stage 0 (0..1)", "1,200", "9.4 KiB", "240 B"):
        assert text in shown


def test_what_is_known_of_time_and_memory_is_shown_too():
    plan = dataclasses.replace(
        make_plan(),
        span_bubble=0.25,
        makespan=0.0125,
        time_unit="s",
        peak_bytes=(3 * 1024.0, 2.0),
    )
    head, first, second, _ = tables.plan_lines(plan)
    assert head.endswith("predicted bubble 50.0%, span bubble 25.0%, step 12.5 ms")
    assert first.endswith("at most 1 in flight, peak 3.0 KiB")
    assert second.endswith("at most 1 in flight, peak 2 B")
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(tables.plan_table(plan))
    shown = console.export_text()
    assert all(text in shown for text in ("peak memory", "3.0 KiB", "2 B", "step 12.5 ms"))


@pytest.mark.parametrize(
    ("time", "unit", "text"),
    [
        (15.0, "forwards", "15 forwards"),
        (2.5, "", "2.5"),
        (17.75, "s", "17.75 s"),
        (0.0213, "s", "21.3 ms"),
        (0.00002, "s", "20 µs"),
        (0.0, "s", "0 s"),
    ],
)
def test_a_time_has_its_unit(time, unit, text):
    assert tables.time_text(time, unit) == text


def test_a_drawing_is_shown_only_whole():
    plan = make_plan()
    drawing = tables.plan_drawing(plan, 80)
    assert drawing is not None
    assert "rank 1" in drawing
    assert tables.plan_drawing(plan, 10) is None


def test_a_step_is_one_line():
    metrics = {
        "train/loss": 2.5,
        "train/lr": 1e-3,
        "val/loss": 2.25,
        "throughput/tokens_per_s": 12345.0,
        "time/step_s": 0.2,
        "memory/rank0_peak_gib": 1.0,
    }
    assert tables.metrics_line(metrics, 7, 20) == (
        "step 7/20  loss 2.5000  val loss 2.2500  lr 1.00e-03  12.3k tokens/s  0.200 s/step"
    )


def test_the_summary_leaves_out_what_is_not_known():
    summary = {"status": "finished", "final_loss": 0.25, "best_val_loss": None, "steps": 0}
    assert tables.summary_line(summary) == ("summary: status finished, final_loss 0.2500, steps 0")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3661, "1:01:01"), (math.inf, "?")],
)
def test_durations(seconds, text):
    assert tables.duration_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(12, "12"), (1500, "1.5k"), (2.5e6, "2.5M"), (3e9, "3.0G")]
)
def test_counts(count, text):
    assert tables.count_text(count) == text


@pytest.mark.parametrize(
    ("size", "text"), [(12, "12 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (1 << 31, "2.0 GiB")]
)
def test_sizes(size, text):
    assert tables.bytes_text(size) == text
