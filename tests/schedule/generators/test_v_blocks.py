from __future__ import annotations

from collections import deque

import pytest

from ppframe.schedule import build_schedule, lower, verify
from ppframe.schedule.generators.v_blocks import Block, Grid, Lane, v_rows
from ppframe.simulator import Cost, simulate

UNIT = Cost(1, 1, 1)
every_block = pytest.mark.parametrize("name", ["v-min", "v-half", "v-zb"])


def codes(lane: Lane) -> str:
    """What runs in each slot: the forwards as `f`, `F`, the backwards as `B`, `b`, weights alike.

    A small letter is the first chunk's.
    """
    return "".join(".fFBbWw"[code] for code in lane.codes).rstrip(".")


def test_weight_gradients_take_the_free_slots_in_the_order_of_the_backwards() -> None:
    assert codes(Lane(Block(0, 1, 2, 4), microbatches=2)) == "fFBWbwfFBWbw"
    assert codes(Lane(Block(0, 2, 3, 4), microbatches=1)) == "f.FBbWw"


def test_an_action_moves_to_the_first_free_slot_from_where_it_can_run() -> None:
    lane = Lane(Block(0, 3, 4, 9), microbatches=1)
    assert codes(lane) == "f..FBW...bw"
    assert lane.move(3, first=2) == 2
    assert lane.move(4, first=3) == 3
    assert lane.move(9, first=0) == 1
    assert codes(lane) == "fbFB.W....w"


def test_an_action_stays_where_nothing_before_is_free() -> None:
    lane = Lane(Block(0, 1, 2, 3), microbatches=1)
    assert lane.move(3, first=0) == 3


@pytest.mark.parametrize(("peak", "slot"), [(1, 6), (2, 4), (None, 4)])
def test_a_forward_moves_only_where_memory_is_left(peak: int | None, slot: int) -> None:
    """One activation is held from slot 3 on: with room for one alone the next waits."""
    lane = Lane(Block(0, 1, 2, 9), microbatches=2, peak=peak)
    assert codes(lane) == "fFBW..fFBbWw...bw"
    assert lane.move(6, first=0) == slot


def test_last_weight_gradients_can_be_taken_out_and_put_back() -> None:
    lane = Lane(Block(0, 1, 2, 4), microbatches=2)
    lane.drop_last_weights()
    assert codes(lane) == "fFBWbwfFB.b"
    assert lane.last_forward == 7
    lane.refill()
    assert codes(lane) == "fFBWbwfFBWbw"


def test_a_refill_remembers_what_waited_from_before() -> None:
    lane = Lane(Block(0, 1, 2, 3), microbatches=1)
    lane._fill(4, deque([6]))
    assert codes(lane) == "fFBbWww"


@every_block
@pytest.mark.parametrize("ranks", range(1, 9))
def test_it_is_legal_and_never_holds_more_than_its_block(name: str, ranks: int) -> None:
    most = simulate(build_schedule(name, ranks, 3 * ranks), UNIT).peak_in_flight
    for microbatches in (*range(1, 12), 16, 24):
        schedule = build_schedule(name, ranks, microbatches)
        verify(schedule)
        if microbatches in (3, 16):
            verify(lower(schedule))
        peaks = simulate(schedule, UNIT).peak_in_flight
        assert all(peak <= limit for peak, limit in zip(peaks, most, strict=True))


@every_block
@pytest.mark.parametrize("ranks", [1, 4, 6, 9])
def test_the_steady_state_can_be_repeated_instead_of_planned(name: str, ranks: int) -> None:
    """Planned slot by slot, a long schedule is the same."""
    microbatches = 4 * ranks + 9
    blocks = [block_of(name, rank, ranks) for rank in range(ranks)]
    lanes = [Lane(block, microbatches) for block in blocks]
    planned = Grid(lanes, microbatches).pulled_together().rows(microbatches)
    assert v_rows(blocks, microbatches) == planned
    assert build_schedule(name, ranks, microbatches).actions == planned


def block_of(name: str, r: int, p: int) -> Block:
    """The papers' slots, g slots later where they would meet others."""
    if name == "v-min":
        g = 2 if p % 3 == 0 else 0
        return Block(r, 2 * p - 1 - r, 2 * p + g + r, 4 * p + g - 1 - r)
    if name == "v-half":
        g = 3 if p % 2 == 0 else 0
        return Block(2 * r, 3 * p - 2 - r, 3 * p + g + 2 * r - 1, 6 * p + g - r - 2)
    return Block(4 * r, 6 * p - 5 - 2 * r, 6 * p - 4 + 4 * r, 12 * p - 9 - 2 * r)


@every_block
def test_few_microbatches_take_no_longer_than_many_without_the_last_ones(name: str) -> None:
    for microbatches in (1, 4, 6, 7, 9, 11):
        span = simulate(build_schedule(name, 6, microbatches), UNIT).makespan
        assert span <= simulate(build_schedule(name, 6, 12), UNIT).makespan
        assert span >= 4 * 6 + 2 * microbatches - 1  # there and back, and rank 0's last weights
