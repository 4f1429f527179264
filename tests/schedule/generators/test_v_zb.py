from __future__ import annotations

import pytest

from ppframe.errors import ConfigError
from ppframe.schedule import build_schedule, lower, verify
from ppframe.simulator import Cost, SimulationReport, simulate
from tests.schedule.drawings import assert_same_grid

UNIT = Cost(1, 1, 1)


def test_drawing() -> None:
    drawing = """
    0F0  .    .
    0F1  1F0  .
    0F2  1F1  2F0
    0F3  1F2  3F0
    0F4  4F0  2F1
    5F0  1F3  3F1
    5B0  4F1  2F2
    5W0  4B0  3F2
    5F1  4W0  3B0
    5B1  4F2  2B0
    5W1  4B1  3W0
    5F2  1B0  2W0
    5B2  4W1  2F3
    0B0  1W0  3F3
    5W2  1F4  3B1
    0W0  4F3  2B1
    0F5  4B2  3W1
    5F3  1B1  2W1
    5B3  4W2  2F4
    0B1  1W1  3F4
    5W3  1F5  3B2
    0W1  4F4  2B2
    5F4  4B3  3W2
    5B4  1B2  2W2
    0B2  4W3  2F5
    5W4  1W2  3F5
    0W2  4F5  3B3
    5F5  4B4  2B3
    5B5  1B3  3B4
    0B3  4B5  2B4
    5W5  1B4  3B5
    0B4  4W4  2B5
    0W3  1B5  3W3
    0B5  1W3  2W3
    0W4  4W5  3W4
    0W5  1W4  2W4
    .    1W5  3W5
    .    .    2W5
    """
    assert_same_grid(build_schedule("v-zb", ranks=3, microbatches=6), drawing)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8, 11])
def test_no_rank_waits_between_its_ends(ranks: int) -> None:
    for microbatches in (2 * ranks, 3 * ranks + 1):
        report = simulate(build_schedule("v-zb", ranks, microbatches), UNIT)
        assert report.span_bubble == 0
        assert report.idle == (ranks - 1,) * ranks


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8, 16])
def test_all_ranks_hold_as_much_as_the_first_of_1f1b(ranks: int) -> None:
    report = simulate(build_schedule("v-zb", ranks, 2 * ranks), UNIT)
    assert [peak / 2 for peak in report.peak_activation] == [ranks] * ranks


@pytest.mark.parametrize("ranks", range(1, 9))
@pytest.mark.parametrize("limit", [0.4, 0.6, 1, 1.5])
def test_it_is_legal_and_keeps_its_limit_whatever_the_stages_cost(ranks: int, limit: float) -> None:
    cost, most = uneven_cost(2 * ranks), max(limit * ranks, (ranks + 4) // 3)
    for microbatches in (1, 2, ranks, 2 * ranks + 1, 16):
        schedule = build_schedule("v-zb", ranks, microbatches, cost=cost, memory_limit=most)
        verify(schedule)
        verify(lower(schedule))
        assert max(simulate(schedule, cost).peak_activation) / 2 <= most + 1e-9


def uneven_cost(stages: int) -> Cost:
    """Times, hops and shares that differ from stage to stage and are no round numbers."""
    return Cost(
        forward=[1 + 0.37 * (s % 3) for s in range(stages)],
        backward_input=[1.1 + 0.53 * ((s + 1) % 3) for s in range(stages)],
        backward_weight=[0.3 + 0.41 * (s % 4) for s in range(stages)],
        transfer=[0.07 * (s % 5) for s in range(stages)],
        weight_share=[(s % 5) / 4 for s in range(stages)],
    )


@pytest.mark.parametrize(("ranks", "microbatches"), [(2, 3), (4, 6), (5, 24), (8, 16)])
def test_with_costs_no_rank_spans_longer_than_in_zbv_or_without(
    ranks: int, microbatches: int
) -> None:
    cost = uneven_cost(2 * ranks)
    searched = build_schedule("v-zb", ranks, microbatches, cost=cost)
    for name in ("zbv", "v-zb"):
        fixed = build_schedule(name, ranks, microbatches)
        spans = [longest_span(simulate(schedule, cost), ranks) for schedule in (searched, fixed)]
        assert spans[0] <= spans[1] + 1e-9


def longest_span(report: SimulationReport, ranks: int) -> float:
    rows = [[entry for entry in report.timeline if entry.rank == rank] for rank in range(ranks)]
    return max(row[-1].end - row[0].start for row in rows)


def test_search_leaves_no_bubble_where_all_parts_take_the_same_time() -> None:
    schedule = build_schedule("v-zb", 4, 12, cost=Cost(2, 2, 2, weight_share=0.4))
    assert simulate(schedule, Cost(2, 2, 2)).span_bubble == 0


def test_half_the_memory_takes_the_order_of_v_half() -> None:
    searched = build_schedule("v-zb", 8, 20, memory_limit=5)
    assert searched.actions == build_schedule("v-half", 8, 20).actions


@pytest.mark.parametrize("limit", [2.9, 0, float("nan")])
def test_a_limit_below_the_memory_of_v_min_is_refused(limit: float) -> None:
    with pytest.raises(ConfigError, match=r"at least 3 microbatches.*Use 3 or more") as caught:
        build_schedule("v-zb", 6, 12, memory_limit=limit)
    assert caught.value.faults[0].path == "schedule.memory_limit"


def test_a_cost_of_other_stages_is_refused() -> None:
    with pytest.raises(ConfigError, match="one number per stage"):
        build_schedule("v-zb", 4, 8, cost=Cost((1, 2), 1, 1))


@pytest.mark.parametrize(("limit", "most"), [(None, 7.5), (9, 9), (5, 5), (4, 4)])
def test_memory_counts_what_b_leaves_beside_what_it_found(limit: float | None, most: float) -> None:
    """Without a limit P microbatches are in flight, each of which comes to 1.25 at most."""
    cost = Cost(1, 1, 1, weight_share=1.25)
    schedule = build_schedule("v-zb", 6, 20, cost=cost, memory_limit=limit)
    verify(schedule)
    assert max(simulate(schedule, cost).peak_activation) / 2 <= most
