"""Every order of small schedules: verify accepts exactly those that can run to their end."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise, permutations, product

import pytest

from ppframe.errors import Deadlock, DependencyViolation, ScheduleError, UnmatchedTransfer
from ppframe.schedule import (
    LoweredSchedule,
    Placement,
    Schedule,
    build_schedule,
    execution_order,
    lower,
    verify,
)
from tests.schedule.drawings import compute, rows
from tests.schedule.oracle import runs_to_its_end


def fault_of(schedule: Schedule | LoweredSchedule) -> ScheduleError | None:
    try:
        verify(schedule)
    except (DependencyViolation, Deadlock, UnmatchedTransfer) as error:
        return error
    return None


def accepts(schedule: Schedule | LoweredSchedule) -> bool:
    fault = fault_of(schedule)
    if fault is not None:
        assert fault.rank is not None
        assert fault.step is not None
        assert fault.action == str(schedule.actions[fault.rank][fault.step])
    return fault is None


def agree(schedules: list[Schedule] | list[LoweredSchedule]) -> int:
    """Compare verify with the oracle; how many were accepted."""
    verdicts = [(accepts(schedule), runs_to_its_end(schedule)) for schedule in schedules]
    assert all(ours == naive for ours, naive in verdicts)
    return sum(ours for ours, _ in verdicts)


def all_orders(*lists: str, owners: tuple[int, ...]) -> list[Schedule]:
    choices = product(*(permutations(row) for row in rows(*lists)))
    return [Schedule(choice, Placement(owners)) for choice in choices]


def test_two_ranks_two_microbatches() -> None:
    orders = all_orders("0F0 0BW0 0F1 0BW1", "1F0 1BW0 1F1 1BW1", owners=(0, 1))
    accepted = agree(orders)
    assert len(orders) == 576
    assert 0 < accepted < 100


def test_split_backward_has_one_order_on_each_rank() -> None:
    assert agree(all_orders("0F0 0B0 0W0", "1F0 1B0 1W0", owners=(0, 1))) == 1


def test_a_whole_backward_beside_split_ones() -> None:
    orders = all_orders("0F0 0B0 0W0", "1F0 1BW0", "2F0 2B0 2W0", owners=(0, 1, 2))
    assert agree(orders) == 1


def test_weight_gradients_may_wait_for_later_microbatches() -> None:
    """F0 B0 come first on each rank or F0 F1 do; W only has to come after its B."""
    orders = all_orders("0F0 0B0 0W0 0F1 0BW1", owners=(0,))
    # Of the 5! orders: F0 before B0 before W0, and F1 before BW1: 5! / (3! 2!).
    assert agree(orders) == 10


def test_a_v_hands_over_on_its_own_rank() -> None:
    orders = all_orders("0F0 3F0 3BW0 0BW0", "1F0 2F0 2BW0 1BW0", owners=(0, 1, 1, 0))
    assert agree(orders) == 1


def test_two_chains_meet_in_every_order() -> None:
    lists = ("0F0 1F1 1BW1 0BW0", "0F1 1F0 1BW0 0BW1")
    orders = [replace(o, chains=(0, 1)) for o in all_orders(*lists, owners=(0, 1))]
    assert 1 < agree(orders) < 50


def shuffled(lowered: LoweredSchedule, seed: int, swaps: int) -> LoweredSchedule:
    draw = random.Random(seed)
    lists = [list(row) for row in lowered.actions]
    for _ in range(swaps):
        row = draw.choice(lists)
        here, there = draw.randrange(len(row)), draw.randrange(len(row))
        there = max(0, min(len(row) - 1, here + draw.choice((-2, -1, 1, 2)))) if seed % 2 else there
        row[here], row[there] = row[there], row[here]
    return replace(lowered, actions=tuple(map(tuple, lists)))


@pytest.mark.parametrize(
    ("name", "ranks", "microbatches", "chunks"),
    [("1f1b", 2, 3, 1), ("1f1b", 3, 4, 1), ("dora-dfs", 2, 2, 2), ("gpipe", 3, 2, 1)],
)
def test_lowered_schedules_with_actions_that_change_places(
    name: str, ranks: int, microbatches: int, chunks: int
) -> None:
    lowered = lower(build_schedule(name, ranks, microbatches, chunks_per_rank=chunks))
    variants = [shuffled(lowered, seed, swaps=1 + seed % 3) for seed in range(400)]
    accepted = agree(variants)
    assert 10 < accepted < 300


def test_lowered_schedules_of_two_chains_with_actions_that_change_places() -> None:
    schedule = compute(
        "0F0 1F1 0F2 1BW1 0BW0 1F3 1BW3 0BW2",
        "0F1 1F0 0F3 1BW0 0BW1 1F2 1BW2 0BW3",
        chains=(0, 1, 0, 1),
    )
    variants = [shuffled(lower(schedule), seed, swaps=1 + seed % 3) for seed in range(400)]
    assert 10 < agree(variants) < 300


@pytest.mark.parametrize("name", ["1f1b", "dora", "looped-bfs"])
def test_the_proven_order_of_every_accepted_variant_can_be_walked(name: str) -> None:
    lowered = lower(build_schedule(name, ranks=2, microbatches=3))
    for seed in range(60):
        variant = shuffled(lowered, seed, swaps=1)
        try:
            order = execution_order(variant)
        except ScheduleError:
            continue
        walked = [str(variant.actions[rank][step]) for rank, step in order]
        assert sorted(walked) == sorted(str(a) for row in variant.actions for a in row)
        for rank, row in enumerate(variant.actions):
            assert [step for at, step in order if at == rank] == list(range(len(row)))
        for send, receive in pairwise(walked):
            if "SEND" in send:
                assert receive == _receive_of(send)


def _receive_of(send: str) -> str:
    stage, rest = send.split("SEND_")
    return f"{int(stage) + (1 if rest[0] == 'F' else -1)}RECV_{rest}"
