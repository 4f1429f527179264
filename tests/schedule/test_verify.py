"""Compute-only schedules: legal ones pass, and each fault has its class, rank, step and action."""

from __future__ import annotations

import pytest

from ppframe.errors import Deadlock, DependencyViolation, IncompleteSchedule, ScheduleError
from ppframe.schedule import Placement, Schedule, build_schedule, forward_only, verify
from tests.schedule.drawings import compute

LINE = (0, 1)
V = (0, 1, 1, 0)


@pytest.mark.parametrize(
    ("lists", "owners"),
    [
        (["0F0 0BW0"], (0,)),
        (["0F0 0B0 0W0"], (0,)),
        (["0F0 1F0 1BW0 0BW0"], (0, 0)),
        (["0F1 0F0 0BW1 0BW0", "1F1 1F0 1BW0 1BW1"], LINE),  # the last stage in its own order
        (["0F0 0F1 0BW1 0BW0", "1F0 1F1 1BW1 1BW0"], LINE),
        (["0F0 0F1 0B0 0B1 0W1 0W0", "1F0 1BW0 1F1 1BW1"], LINE),
        (["0F0 3F0 3BW0 0BW0", "1F0 2F0 2BW0 1BW0"], V),
        (["1F0 1BW0", "0F0 0BW0"], (1, 0)),  # stage 0 on rank 1
        (["0F0 0BW0", "1F0 2F0 2BW0 1BW0"], (0, 1, 1)),  # uneven chunks
        (["0F0 (0F1;0BW0) 0BW1", "1F0 1BW0 1F1 1BW1"], LINE),
        (["0F0 0B0 (0F1;0W0) 0BW1"], (0,)),
        (["0F0 1F0 1B0 (1W0;0B0) 0W0"], (0, 0)),  # of one microbatch, but on different stages
    ],
)
def test_legal_schedules_pass(lists: list[str], owners: tuple[int, ...]) -> None:
    verify(compute(*lists, owners=owners))


FAULTS = [
    # an action that is missing; the step is that of the one which lacks it
    (["0F0 0BW0 0BW1"], IncompleteSchedule, 0, 2, "0F1"),
    (["0F0 0BW0 0F1"], IncompleteSchedule, 0, 2, "0BW1"),
    (["0F0 0B0"], IncompleteSchedule, 0, 1, "0W0"),
    (["0F0 0W0"], IncompleteSchedule, 0, 1, "0B0"),
    (["0F0 0BW0", "1F0"], IncompleteSchedule, 1, 0, "1BW0"),
    (["0F0 0BW0 0F1 0BW1", "1F0 1BW0"], IncompleteSchedule, 1, 2, "1F1"),
    (["0F0 0BW0 0F2 0BW2"], IncompleteSchedule, 0, 4, "0F1"),
    (["0F1 0BW1"], IncompleteSchedule, 0, 2, "0F0"),
    # one too many
    (["0F0 0F0 0BW0"], IncompleteSchedule, 0, 1, "0F0"),
    (["0F0 0BW0 0BW0"], IncompleteSchedule, 0, 2, "0BW0"),
    (["0F0 0B0 0W0 0W0"], IncompleteSchedule, 0, 3, "0W0"),
    (["0F0 0BW0 0B0"], IncompleteSchedule, 0, 2, "0B0"),
    (["0F0 0B0 0BW0"], IncompleteSchedule, 0, 2, "0BW0"),
    (["0F0 0BW0 0W0"], IncompleteSchedule, 0, 2, "0W0"),
    (["0F0 0B0 0W0 0BW0"], IncompleteSchedule, 0, 3, "0BW0"),
    (["0F0 (0F0;0BW0)"], IncompleteSchedule, 0, 1, "(0F0;0BW0)"),
    # a stage, microbatch or rank that isn't right
    (["0F0 0BW0 2F0", "1F0 1BW0"], IncompleteSchedule, 0, 2, "2F0"),
    (["0F0 0BW0 1F0", "1BW0"], IncompleteSchedule, 0, 2, "1F0"),
    (["0F0 1BW0", "1F0 0BW0"], IncompleteSchedule, 0, 1, "1BW0"),
    (["0F0 0BW0 0F7", "1F0 1BW0"], IncompleteSchedule, 0, 2, "0F7"),
    (["0F0 0BW0 0F1", "1F0 1BW0"], IncompleteSchedule, 0, 2, "0F1"),
    (["0F0 0BW0", "1F0 (1BW0;1F3)"], IncompleteSchedule, 1, 1, "(1BW0;1F3)"),
    (["0F0 0F999999999"], IncompleteSchedule, 0, 1, "0F999999999"),
    (["0F0", ""], IncompleteSchedule, 1, 0, "1F0"),
    (["0F0 0F1", "", "2F0"], IncompleteSchedule, 1, 0, "1F0"),
    (["0F0", "1F1", "2F2"], IncompleteSchedule, 1, 1, "1F0"),
    (["0F999999999 0BW999999999"], IncompleteSchedule, 0, 2, "0F0"),
    # order on one rank
    (["0BW0 0F0"], DependencyViolation, 0, 0, "0BW0"),
    (["0F0 0W0 0B0"], DependencyViolation, 0, 1, "0W0"),
    (["0F0 0BW0 0BW1 0F1", "1F0 1BW0 1F1 1BW1"], DependencyViolation, 0, 2, "0BW1"),
    (["(0F0;0BW0)"], DependencyViolation, 0, 0, "(0F0;0BW0)"),
    (["0F0 (0W0;0B0)"], DependencyViolation, 0, 1, "(0W0;0B0)"),
    # order between ranks
    (["0F0 0BW0 0F1 0BW1", "1F1 1BW1 1F0 1BW0"], Deadlock, 0, 1, "0BW0"),
    (["0F0 0BW0 0F1 0BW1", "1F0 1F1 1BW0 1BW1"], Deadlock, 0, 1, "0BW0"),
]


@pytest.mark.parametrize(("lists", "kind", "rank", "step", "action"), FAULTS)
def test_each_fault_is_named(
    lists: list[str], kind: type[ScheduleError], rank: int, step: int, action: str
) -> None:
    with pytest.raises(ScheduleError) as caught:
        verify(compute(*lists))
    error = caught.value
    assert type(error) is kind
    assert (error.rank, error.step, error.action) == (rank, step, action)
    assert f"rank {rank}, step {step}: " in str(error)
    assert f"step  rank {max(0, rank - 6)}" in str(error)


def test_a_stage_before_its_own_rank_s_earlier_stage_is_a_dependency_violation() -> None:
    with pytest.raises(DependencyViolation) as caught:
        verify(compute("0F0 3F0 3BW0 0BW0", "2F0 1F0 2BW0 1BW0", owners=V))
    assert (caught.value.rank, caught.value.step, caught.value.action) == (1, 0, "2F0")


@pytest.mark.parametrize("action", ["0SEND_F0", "0REDUCE", "0SEND_B0_0RECV_F0"])
def test_communication_belongs_in_a_lowered_schedule(action: str) -> None:
    with pytest.raises(ScheduleError, match="Make it a LoweredSchedule") as caught:
        verify(compute(f"0F0 {action} 0BW0"))
    assert (caught.value.rank, caught.value.step, caught.value.action) == (0, 1, action)


def test_a_schedule_holds_at_least_one_microbatch() -> None:
    with pytest.raises(IncompleteSchedule, match="at least one microbatch"):
        verify(compute(""))


def test_the_grid_in_the_message_marks_the_place() -> None:
    with pytest.raises(DependencyViolation) as caught:
        verify(compute("0F0 0BW0", "1BW0 1F0"))
    assert str(caught.value).splitlines() == [
        "rank 1, step 0: action 1BW0 must come after 1F0, but comes before it on the same rank. "
        "Change their order.",
        "step  rank 0  rank 1",
        "   0  0F0     >1BW0<",
        "   1  0BW0    1F0",
    ]


def test_a_deadlock_names_each_rank_s_waiting_action_and_what_it_waits_for() -> None:
    with pytest.raises(Deadlock) as caught:
        verify(compute("0F0 0BW0 0F1 0BW1", "1F0 1F1 1BW0 1BW1", "2F0 2BW0 2F1 2BW1"))
    text = str(caught.value)
    assert "rank 0, step 1: 0BW0 waits for 1B0 or 1BW0 of rank 1" in text
    assert "rank 1, step 1: 1F1 waits for 0F1 of rank 0" in text
    assert "rank 2, step 2: 2F1 waits for 1F1 of rank 1" in text
    assert ">0BW0<" in text


def test_the_place_of_a_deadlock_is_in_the_circle_not_on_a_rank_that_only_follows() -> None:
    lists = ["0F0 0F1 0BW0 0BW1", "1F0 1BW0 1F1 1BW1", "2F0 2F1 2BW0 2BW1"]
    with pytest.raises(Deadlock) as caught:
        verify(compute(*lists))
    assert (caught.value.rank, caught.value.step, caught.value.action) == (1, 1, "1BW0")


@pytest.mark.parametrize("lists", [["0F0 0F1"], ["0F1 0F0"], ["0F0 0F1", "1F1 1F0"]])
def test_a_forward_only_schedule_needs_no_backward(lists: list[str]) -> None:
    verify(compute(*lists, forward_only=True))
    with pytest.raises(IncompleteSchedule):
        verify(compute(*lists))


@pytest.mark.parametrize(
    ("lists", "rank", "step", "action"),
    [
        (["0F0 0BW0"], 0, 1, "0BW0"),
        (["0F0 0F1", "1F0 1F1 1W0"], 1, 2, "1W0"),
        (["0F0 0F1", "1F0"], 1, 1, "1F1"),
        (["0F0 0F1", "1F0 1F1 1F2"], 0, 2, "0F2"),
        (["0F0 0F1", "1F0 1F1 1F2", "2F0 2F1"], 1, 2, "1F2"),
    ],
)
def test_a_forward_only_schedule_has_every_forward_and_no_backward(
    lists: list[str], rank: int, step: int, action: str
) -> None:
    with pytest.raises(IncompleteSchedule) as caught:
        verify(compute(*lists, forward_only=True))
    assert (caught.value.rank, caught.value.step, caught.value.action) == (rank, step, action)


def test_messages_about_big_schedules_stay_small() -> None:
    schedule = build_schedule("1f1b", ranks=32, microbatches=64)
    broken = [list(row) for row in schedule.actions]
    broken[20][40], broken[20][41] = broken[20][41], broken[20][40]
    del broken[7][3]
    with pytest.raises(IncompleteSchedule) as caught:
        verify(Schedule(tuple(map(tuple, broken)), Placement.loop(32)))
    assert caught.value.rank == 7
    assert len(str(caught.value)) < 3000


def test_a_forward_only_flag_travels_with_copies() -> None:
    assert forward_only(Placement.loop(2), 2).forward_only
