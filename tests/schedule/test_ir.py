from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from ppframe.errors import ScheduleError
from ppframe.schedule import LoweredSchedule, Placement, Schedule, Transfer, build_schedule, lower
from ppframe.schedule.ir import is_carried, peer_of
from tests.schedule.drawings import compute, rows

SCHEDULE = build_schedule("dora-dfs", ranks=4, microbatches=8, chunks_per_rank=2)


@pytest.mark.parametrize("schedule", [SCHEDULE, lower(SCHEDULE)], ids=["compute", "lowered"])
def test_accessors(schedule: Schedule | LoweredSchedule) -> None:
    assert (schedule.ranks, schedule.num_stages, schedule.chunks_per_rank) == (4, 8, 2)
    assert (schedule.num_microbatches, schedule.name, schedule.forward_only) == (
        8, "dora-dfs", False,
    )  # fmt: skip
    assert [schedule.rank_of(stage, 3) for stage in range(8)] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert schedule.owners(3) == schedule.placement.owners
    assert {schedule.chain(microbatch) for microbatch in range(8)} == {0}
    assert schedule.placement[5] == 1


def test_lists_become_tuples() -> None:
    schedule = Schedule([list(row) for row in SCHEDULE.actions], SCHEDULE.placement)  # type: ignore[arg-type]
    assert schedule == SCHEDULE
    assert hash(schedule) == hash(SCHEDULE)


def test_a_placement_may_be_given_as_ranks() -> None:
    schedule = Schedule(SCHEDULE.actions, (0, 1, 2, 3) * 2)  # type: ignore[arg-type]
    assert schedule == SCHEDULE
    assert schedule.placement == Placement.loop(4, 2)


def test_a_schedule_cannot_be_changed_but_replaced() -> None:
    with pytest.raises(FrozenInstanceError):
        SCHEDULE.name = "other"  # type: ignore[misc]
    shorter = replace(SCHEDULE, actions=rows("0F0 4F0", "1F0", "2F0", "3F0"), forward_only=True)
    assert shorter.num_microbatches == 1
    assert SCHEDULE.num_microbatches == 8


def test_compute_only_and_lowered_are_different_types_and_never_equal() -> None:
    one = Placement.loop(1)
    assert Schedule(rows("0F0 0BW0"), one) != LoweredSchedule(rows("0F0 0BW0"), one)


def test_it_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(SCHEDULE)) == SCHEDULE
    assert pickle.loads(pickle.dumps(lower(SCHEDULE))) == lower(SCHEDULE)


def test_microbatches_are_counted_in_pairs_too() -> None:
    assert compute("0F0 (0F5;0BW0)").num_microbatches == 6
    assert compute("").num_microbatches == 0


@pytest.mark.parametrize("kind", [Schedule, LoweredSchedule])
def test_there_is_a_list_for_each_rank(kind: type[Schedule] | type[LoweredSchedule]) -> None:
    with pytest.raises(ScheduleError, match="each of the 2 ranks of its placement, but has 1"):
        kind(rows("0F0"), Placement.loop(2))


def test_transfers_carry_a_boundary_between_two_ranks_of_a_lowered_schedule() -> None:
    v = compute("0F0 3F0 3BW0 0BW0", "1F0 2F0 2BW0 1BW0", owners=(0, 1, 1, 0))
    assert [is_carried(lower(v), stage) for stage in range(3)] == [True, False, True]
    assert not any(is_carried(v, stage) for stage in range(3))


def test_the_peer_of_a_message_is_the_rank_of_the_neighbour_stage() -> None:
    lowered = lower(SCHEDULE)
    ends = [a for a in lowered.actions[0] if isinstance(a, Transfer)]
    peers = {str(end): peer_of(lowered, end) for end in ends if end.microbatch == 0}
    assert peers == {
        "0SEND_F0": 1, "4RECV_F0": 3, "4SEND_F0": 1, "4RECV_B0": 1, "4SEND_B0": 3, "0RECV_B0": 1,
    }  # fmt: skip
