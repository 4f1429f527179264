from __future__ import annotations

import pytest

from ppframe.errors import ConfigError
from ppframe.schedule import ActionKind, Schedule, build_schedule, lower, verify
from ppframe.simulator import Cost, simulate
from tests.schedule.drawings import assert_same_grid


def test_drawing() -> None:
    drawing = """
    0F0  .    .    .
    0F1  1F0  .    .
    0F2  1F1  2F0  .
    0F3  1F2  2F1  3F0
    .    .    .    3B0
    .    .    2B0  3F1
    .    1B0  2F2  3B1
    0B0  1F3  2B1  3F2
    0W0  1B1  2F3  3B2
    0F4  1W0  2B2  3F3
    0B1  1F4  2W0  3B3
    0W1  1B2  2F4  3W0
    0F5  1W1  2B3  3F4
    0B2  1F5  2W1  3B4
    0W2  1B3  2F5  3W1
    0F6  1W2  2B4  3F5
    0B3  1F6  2W2  3B5
    0W3  1B4  2F6  3W2
    0F7  1W3  2B5  3F6
    0B4  1F7  2W3  3B6
    0W4  1B5  2F7  3W3
    0B5  1W4  2B6  3F7
    0W5  1B6  2W4  3B7
    0B6  1W5  2B7  3W4
    0W6  1B7  2W5  3W5
    0B7  1W6  2W6  3W6
    0W7  1W7  2W7  3W7
    """
    assert_same_grid(build_schedule("zb-1p", ranks=4, microbatches=8), drawing)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_has_the_bubble_of_zb_h1_when_stages_are_alike(share: float) -> None:
    """(P - 1) (F + B - W) of makespan is the least there is in the memory of 1F1B."""
    p, m, f, b, w = 4, 12, 4.0, 3.0, 2.0
    cost = Cost(f, b, w, weight_share=share)
    report = simulate(build_schedule("zb-1p", p, m, cost=cost), cost)
    assert report.makespan == m * (f + b + w) + (p - 1) * (f + b - w)


@pytest.mark.parametrize("microbatches", [1, 2, 4])
def test_few_microbatches_go_through_without_waiting_for_each_other(microbatches: int) -> None:
    """(M + P - 1) (F + B) + W up to M = P; all other weight gradients fit into rank 0's waits."""
    p, f, b, w, cost = 4, 4.0, 3.0, 2.0, Cost(4, 3, 2)
    report = simulate(build_schedule("zb-1p", p, microbatches, cost=cost), cost)
    # Rank 0 runs a weight gradient between two backwards: they come F + B apart.
    assert report.makespan == (microbatches + p - 1) * (f + b) + w


def test_a_slow_stage_shapes_the_schedule() -> None:
    """Rank 0 waits longer for its first backward when the last rank is slow, and fills the wait."""
    cost = Cost(forward=(1, 1, 1, 4), backward_input=(1, 1, 1, 4), backward_weight=1)
    even = build_schedule("zb-1p", 4, 12, memory_limit=12)
    uneven = build_schedule("zb-1p", 4, 12, cost=cost, memory_limit=12)
    assert first_backward(uneven, rank=2) > first_backward(even, rank=2)
    assert simulate(uneven, cost).span_bubble < simulate(even, cost).span_bubble


def first_backward(schedule: Schedule, rank: int) -> int:
    kinds = [action.kind for action in schedule.actions[rank]]
    return kinds.index(ActionKind.B)


@pytest.mark.parametrize("ranks", range(1, 9))
@pytest.mark.parametrize("limit", [1, 1.5, 4, None, 30])
def test_it_is_legal_and_keeps_its_limit_whatever_the_stages_cost(
    ranks: int, limit: float | None
) -> None:
    cost = uneven_cost(ranks)
    for microbatches in (1, 2, 3, 5, ranks, 2 * ranks + 1, 24):
        schedule = build_schedule("zb-1p", ranks, microbatches, cost=cost, memory_limit=limit)
        verify(schedule)
        verify(lower(schedule))
        most = ranks if limit is None else limit
        assert max(simulate(schedule, cost).peak_activation) <= most + 1e-9


def uneven_cost(ranks: int) -> Cost:
    """Times, hops and shares that differ from stage to stage and are no round numbers."""
    return Cost(
        forward=[1 + 0.37 * (s % 3) for s in range(ranks)],
        backward_input=[1.1 + 0.53 * ((s + 1) % 3) for s in range(ranks)],
        backward_weight=[0.3 + 0.41 * (s % 4) for s in range(ranks)],
        transfer=[0.07 * s for s in range(ranks)],
        weight_share=[(s % 5) / 4 for s in range(ranks)],
    )


@pytest.mark.parametrize(("limit", "most"), [(None, 4.5), (1.5, 1.5), (2, 2), (3.2, 3.2)])
def test_memory_counts_what_b_leaves_beside_what_it_found(limit: float | None, most: float) -> None:
    """Without a limit P are in flight; the last B of a rank adds a half to them."""
    cost = Cost(3, 2, 1, weight_share=1.5)
    schedule = build_schedule("zb-1p", 4, 12, cost=cost, memory_limit=limit)
    report = simulate(schedule, cost)
    assert max(report.peak_activation) <= most
    assert max(report.peak_in_flight) == int(most - 0.5)


def test_a_limit_without_room_for_what_b_leaves_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"at least 1\.5, what one microbatch takes"):
        build_schedule("zb-1p", 4, 8, cost=Cost(1, 1, 1, weight_share=1.5), memory_limit=1.4)


@pytest.mark.parametrize("limit", [0.99, 0, -1, float("nan")])
def test_a_limit_that_holds_no_microbatch_is_refused(limit: float) -> None:
    with pytest.raises(ConfigError, match=r"at least 1, .*Use 1 or more") as caught:
        build_schedule("zb-1p", 4, 8, memory_limit=limit)
    assert caught.value.faults[0].path == "schedule.memory_limit"


def test_a_cost_of_other_stages_is_refused() -> None:
    with pytest.raises(ConfigError, match="one number per stage"):
        build_schedule("zb-1p", 4, 8, cost=Cost((1, 2), 1, 1))
