from __future__ import annotations

import pytest

from ppframe.schedule import Placement, Schedule, build_schedule, verify
from ppframe.schedule.generators.v_blocks import Block
from ppframe.schedule.generators.v_offsets import Offsets, best_within
from ppframe.simulator import Cost, simulate

UNIT = Cost(1, 1, 1)
MODELS = {
    "1.5B": (18.522, 18.086, 9.337, 0.601, 0.366),
    "6.2B": (29.718, 29.444, 19.927, 0.527, 0.432),
}


def test_blocks_of_offsets() -> None:
    """Down two by two, a slot free, back one by one, then the same with three free at the top."""
    assert Offsets(2, 1, after_down=1, at_top=3, before_back=2).blocks(3) == [
        Block(0, 8, 12, 21),
        Block(2, 7, 14, 20),
        Block(4, 6, 16, 19),
    ]


@pytest.mark.parametrize("ranks", [3, 4, 6, 8])
def test_more_memory_never_costs_time(ranks: int) -> None:
    spans = []
    for limit in range((ranks + 4) // 3, ranks + 1):
        schedule = Schedule(best_within(ranks, 2 * ranks, None, limit), Placement.v(ranks))
        verify(schedule)
        report = simulate(schedule, UNIT)
        assert max(report.peak_activation) / 2 <= limit
        spans.append(report.makespan)
    assert spans == sorted(spans, reverse=True)
    assert spans[-1] == simulate(build_schedule("v-zb", ranks, 2 * ranks), UNIT).makespan


@pytest.mark.parametrize(("name", "limit"), [("v-min", 4), ("v-half", 5)])
def test_it_does_as_well_as_named_blocks_in_their_memory(name: str, limit: int) -> None:
    best = Schedule(best_within(8, 24, None, limit), Placement.v(8))
    named = build_schedule(name, 8, 24)
    assert simulate(best, UNIT).makespan <= simulate(named, UNIT).makespan


@pytest.mark.parametrize(("model", "optimum"), [("1.5B", 0.1769), ("6.2B", 0.1453)])
def test_three_quarters_of_the_memory_reach_a_proven_optimum(model: str, optimum: float) -> None:
    """P = 4, M = 8: an exact solver found nothing with a shorter makespan."""
    f, b, w, transfer, share = MODELS[model]
    cost = Cost(f / 2, b / 2, w / 2, transfer=transfer, weight_share=share)
    schedule = build_schedule("v-zb", 4, 8, cost=cost, memory_limit=3)
    report = simulate(schedule, cost)
    assert round(report.bubble_fraction, 4) == optimum
    assert max(report.peak_activation) / 2 <= 3
