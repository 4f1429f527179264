from __future__ import annotations

import pytest

from ppframe.schedule import Placement, Schedule, build_schedule, verify
from ppframe.schedule.action import ActionKind
from ppframe.schedule.cost import Cost
from ppframe.schedule.generators.v_clock import Clock
from ppframe.schedule.generators.v_search import PUBLISHED, VARIANTS, VPass, VVariant, v_search
from ppframe.schedule.generators.zb_search import Times
from ppframe.simulator import simulate

F, B = ActionKind.F, ActionKind.B
COST = Cost(
    forward=(1, 2, 1.5, 1),
    backward_input=(2, 1, 1, 1.25),
    backward_weight=(0.5, 1, 0.75, 2),
    transfer=(0.5, 9, 0.25, 0),
    weight_share=0.5,
)


def test_clock_waits_for_hops_but_not_at_the_turn() -> None:
    """Two ranks: stage 1 follows after a hop of 0.5, stage 2 on the same rank at once."""
    clock = Clock(Times.of(COST, 4), microbatches=1)
    assert clock.arrival(F, 1) is None
    assert not clock.run(F, 1)
    for stage in range(4):
        assert clock.run(F, stage)
    assert clock.forward_ends == [[1], [3.5], [5], [6.25]]
    assert clock.waited == [4.25, 0]
    assert clock.arrival(F, 0) is None
    assert clock.arrival(B, 3) == 6.25


def test_clock_counts_what_a_rank_holds() -> None:
    clock = Clock(Times.of(COST, 4), microbatches=1)
    for stage in range(4):
        clock.run(F, stage)
    clock.run(B, 3)
    assert clock.held == [1.5, 2]
    clock.run_weights(0)
    assert clock.held == [1, 2]
    assert clock.most_held == 2


@pytest.mark.parametrize("name", ["zbv", "v-half", "v-zb"])
def test_clock_follows_an_order_as_the_simulator_does(name: str) -> None:
    schedule = build_schedule(name, 2, 5)
    clock = Clock(Times.of(COST, 4), microbatches=5)
    clock.follow(schedule.actions)
    report = simulate(schedule, COST)
    assert clock.rows() == schedule.actions
    assert max(clock.now) == pytest.approx(report.makespan)
    for rank, waited in enumerate(clock.waited):
        row = [entry for entry in report.timeline if entry.rank == rank]
        busy = sum(entry.end - entry.start for entry in row)
        assert waited == pytest.approx(row[-1].end - row[0].start - busy)
    assert clock.most_held == pytest.approx(max(report.peak_activation))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_the_handwritten_order_for_equal_times(variant: VVariant) -> None:
    """With times alike no gap opens, so there is nothing to decide before the cool-down."""
    times = Times.of(None, 8)
    clock = Clock(times, 12)
    assert VPass(clock, times, 8, variant).runs_to_its_end(12)
    assert clock.span == 72
    steady = [row[:40] for row in build_schedule("zbv", 4, 12).actions]
    assert [row[:40] for row in clock.rows()] == steady


def test_a_pass_that_lacks_memory_does_not_count() -> None:
    times = Times.of(None, 8)
    assert not VPass(Clock(times, 12), times, 6, PUBLISHED[0]).runs_to_its_end(12)


@pytest.mark.parametrize(
    ("microbatches", "limit", "cost"),
    [
        (6, 7, Cost((1, 0, 1, 1), 1, (0, 0, 1, 1))),  # nobody's next backward can come
        (5, 4, Cost((8, 1, 2, 2), 1, 1)),  # rank 0 is too slow for the turn of rank 1
    ],
)
def test_a_pass_that_gets_stuck_does_not_count(microbatches: int, limit: int, cost: Cost) -> None:
    times = Times.of(cost, 4)
    stuck = VPass(Clock(times, microbatches), times, limit, PUBLISHED[0])
    assert not stuck.runs_to_its_end(microbatches)
    schedule = build_schedule("v-zb", 2, microbatches, cost=cost, memory_limit=limit / 2)
    verify(schedule)


def test_the_best_of_passes_and_given_orders_is_taken() -> None:
    half = build_schedule("v-half", 4, 12).actions
    assert v_search(12, None, 2.5, [half]) == half
    best = Schedule(v_search(12, None, 4, [half]), Placement.v(4))
    assert simulate(best, Cost(1, 1, 1)).span_bubble == 0
