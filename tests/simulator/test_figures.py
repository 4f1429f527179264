from __future__ import annotations

import pytest

from ppframe.schedule import build_schedule
from ppframe.simulator import Cost, simulate
from ppframe.simulator.figures import critical_path_text, rank_figures, step_figures
from ppframe.simulator.texts import time_text


def test_the_critical_path_tells_work_hops_and_ranks() -> None:
    """One microbatch through two ranks and back: F F BW BW of 6, and two hops."""
    report = simulate(build_schedule("gpipe", 2, 1), Cost(1, 1, 1, transfer=0.25))
    text = "2 F, 2 BW for 6 s, hops for 500 ms; ranks 0 1 0"
    assert critical_path_text(report, "s") == text
    assert dict(step_figures(report, "s"))["critical path"] == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 s"), (2.5, "2.5 s"), (0.25, "250 ms"), (3e-6, "3 µs")]
)
def test_seconds_are_shown_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert time_text(seconds, "s") == text


def test_a_long_way_is_shortened() -> None:
    report = simulate(build_schedule("gpipe", 12, 1))
    assert critical_path_text(report).endswith("ranks 0 1 2 3 4 5 6 7 8 9 10 11 10 9 8 7 …")


def test_ranks_have_bytes_where_the_cost_tells_them() -> None:
    schedule = build_schedule("1f1b", 2, 2)
    assert "peak bytes" not in next(rank_figures(simulate(schedule)))
    first, second = rank_figures(simulate(schedule, Cost(1, 1, 1, activation_bytes=1024)))
    assert (first["peak bytes"], second["peak bytes"]) == ("2.0 KiB", "1.0 KiB")
    # of 9 in all each works for 2 * 3
    assert (first["busy"], first["idle"], first["idle share"]) == ("6", "3", "33.3%")
