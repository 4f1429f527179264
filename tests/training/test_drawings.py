"""Planned and recorded steps on one scale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ppframe.schedule import Action, build_schedule
from ppframe.schedule.cost import UNIT_COST, Cost
from ppframe.simulator import replay, simulate
from ppframe.training.drawings import (
    PlannedStep,
    RanStep,
    draw_plan,
    draw_ran,
    in_seconds,
    trace_plan,
)


def planned(cost: Cost = UNIT_COST) -> PlannedStep:
    schedule = build_schedule("gpipe", 2, 1)
    return PlannedStep(schedule, simulate(schedule, cost), cost)


def ran(source: str = "wall") -> RanStep:
    """F take 10 ms, backwards 30 ms: 80 ms of computing where the plan has 6 units."""
    durations = {"0F0": 0.01, "1F0": 0.01, "1BW0": 0.03, "0BW0": 0.03}
    schedule = planned().schedule
    report = replay(schedule, {Action.parse(text): s for text, s in durations.items()})
    return RanStep(7, report.timeline, source)


def test_a_plan_in_forwards_is_scaled_to_the_same_computing_time() -> None:
    report, note = in_seconds(planned(), ran())
    assert report.makespan == pytest.approx(0.08)
    first, last = report.timeline[0], report.timeline[1]
    assert (first.start, first.end) == pytest.approx((0, 0.08 / 6))
    assert last.duration == pytest.approx(2 * 0.08 / 6)
    assert "13.33 ms" in note


def test_hops_are_scaled_as_well() -> None:
    report, _ = in_seconds(planned(Cost(1, 1, 1, transfer=0.5)), ran())
    assert report.makespan == pytest.approx(0.08 + 2 * 0.5 * 0.08 / 6)


def test_a_plan_in_seconds_stays_as_it_is() -> None:
    step = planned(Cost(0.01, 0.01, 0.01, time_unit="s"))
    assert in_seconds(step, ran()) == (step.report, "")


def test_a_plan_is_drawn_and_traced(tmp_path: Path) -> None:
    draw_plan(tmp_path, planned())
    trace_plan(tmp_path, planned())
    assert (tmp_path / "schedule.svg").read_text().count('class="box') == 4
    assert "makespan 6 forwards" in (tmp_path / "schedule.html").read_text()
    events = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    # a forward of unknown length is shown as a millisecond
    assert {event["dur"] for event in events if event["ph"] == "X"} == {1000, 2000}


def test_both_are_drawn_and_traced(tmp_path: Path) -> None:
    draw_ran(tmp_path, planned(), ran("replayed"), {})
    page = (tmp_path / "timeline.html").read_text()
    assert "gpipe, step 7, predicted and measured" in page
    assert "ranks took turns" in page
    assert (tmp_path / "timeline.svg").read_text().count('class="box') == 2 * 4
    events = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    spans = {(e["pid"], e["name"]): e["dur"] for e in events if e["ph"] == "X"}
    assert spans[0, "r0/0_BW_0"] == pytest.approx(2 * 80_000 / 6)
    assert spans[1, "r0/0_BW_0"] == pytest.approx(30_000)


def test_what_ran_side_by_side_needs_no_word_of_turns(tmp_path: Path) -> None:
    measured = [
        entry._replace(start=entry.start + 5, end=entry.end + 5) for entry in ran().timeline
    ]
    draw_ran(tmp_path, planned(), RanStep(1, measured, "wall"), {})
    drawing = (tmp_path / "timeline.svg").read_text()
    assert "ranks took turns" not in drawing
    assert 'data-start="0" data-end="0.01"' in drawing
