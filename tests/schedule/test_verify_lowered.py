"""Lowered schedules: legal ones pass, and each fault has its class, rank, step and action."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ppframe.errors import (
    Deadlock,
    DependencyViolation,
    IncompleteSchedule,
    ScheduleError,
    UnmatchedTransfer,
)
from ppframe.schedule import LoweredSchedule, Placement, execution_order, verify
from tests.schedule.drawings import lowered, rows

V = (0, 1, 1, 0)
LOOP = (0, 1, 0, 1)


@pytest.mark.parametrize(
    ("lists", "owners"),
    [
        (["0F0 0BW0"], (0,)),
        (["0F0 0BW0 0REDUCE"], (0,)),
        (["0F0 0SEND_F0 0RECV_B0 0BW0", "1RECV_F0 1F0 1BW0 1SEND_B0"], (0, 1)),
        (["0F0 0SEND_F0 0RECV_B0 0B0 0W0", "1RECV_F0 1F0 1B0 1SEND_B0 1W0"], (0, 1)),
        (["0F0 0SEND_F0 0RECV_B0 0B0 0W0", "1RECV_F0 1F0 1B0 1W0 1SEND_B0"], (0, 1)),
        (["0F0 0SEND_F0 3RECV_F0 3F0 3BW0 3SEND_B0 0RECV_B0 0BW0",
          "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2BW0 1BW0 1SEND_B0"], V),
        (["0F0 0SEND_F0 0F1 0SEND_F1_0RECV_B0 0BW0 0RECV_B1 0BW1",
          "1RECV_F0 1F0 1BW0 1SEND_B0_1RECV_F1 1F1 1BW1 1SEND_B1"], (0, 1)),
        (["0F0 0SEND_F0 0F1 0RECV_B0 (0BW0;0F2) 0SEND_F1 0SEND_F2 0RECV_B1 0BW1 0RECV_B2 0BW2",
          "1RECV_F0 1F0 1BW0 1SEND_B0 1RECV_F1 1RECV_F2 1F1 1BW1 1F2 1SEND_B1 1BW2 1SEND_B2"],
         (0, 1)),
    ],
)  # fmt: skip
def test_legal_schedules_pass(lists: list[str], owners: tuple[int, ...]) -> None:
    schedule = lowered(*lists, owners=owners)
    verify(schedule)
    assert len(execution_order(schedule)) == sum(map(len, schedule.actions))


GOOD = ("0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0BW0 0RECV_B1 0BW1",
        "1RECV_F0 1F0 1RECV_F1 1BW0 1F1 1SEND_B0 1BW1 1SEND_B1")  # fmt: skip
TURN = ("0F0 0SEND_F0 3RECV_F0 3F0 3BW0 3SEND_B0 0RECV_B0 0BW0",
        "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2BW0 1BW0 1SEND_B0")  # fmt: skip


def changed(lists: Sequence[str], changes: dict[str, str]) -> list[str]:
    """The lists with texts replaced; each must stand there."""
    text = "|".join(lists)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    return [" ".join(part.split()) for part in text.split("|")]


MISSING_OR_DOUBLED = [
    ({"0SEND_F1": ""}, UnmatchedTransfer, 1, 2, "1RECV_F1"),
    ({"1RECV_F1": ""}, UnmatchedTransfer, 0, 3, "0SEND_F1"),
    ({"1SEND_B1": ""}, UnmatchedTransfer, 0, 6, "0RECV_B1"),
    ({"0RECV_B0": ""}, UnmatchedTransfer, 1, 5, "1SEND_B0"),
    ({"0SEND_F1": "", "1RECV_F1": ""}, UnmatchedTransfer, 1, 3, "1F1"),
    ({"0RECV_B1": "", "1SEND_B1": ""}, UnmatchedTransfer, 0, 6, "0BW1"),
    ({"0SEND_F1": "0SEND_F1 0SEND_F1"}, UnmatchedTransfer, 0, 4, "0SEND_F1"),
    ({"1RECV_F0": "1RECV_F0 1RECV_F0"}, UnmatchedTransfer, 1, 1, "1RECV_F0"),
    ({"1SEND_B1": "1SEND_B1 1SEND_B0"}, UnmatchedTransfer, 1, 8, "1SEND_B0"),
    ({"0F1": ""}, IncompleteSchedule, 0, 6, "0F1"),
    ({"1BW1": "1B1"}, IncompleteSchedule, 1, 6, "1W1"),
    ({"0BW1": "0BW1 0BW1"}, IncompleteSchedule, 0, 8, "0BW1"),
]

MISPLACED = [
    # on the wrong rank, or of a stage, microbatch or neighbour that there isn't
    ({"0SEND_F0": "", "1RECV_F0": "0SEND_F0 1RECV_F0"}, IncompleteSchedule, 1, 0, "0SEND_F0"),
    ({"0SEND_F0": "0SEND_F0 1RECV_F0", "|1RECV_F0": "|"}, IncompleteSchedule, 0, 2, "1RECV_F0"),
    ({"0SEND_F0": "0SEND_F0 0SEND_F7"}, IncompleteSchedule, 0, 2, "0SEND_F7"),
    ({"0SEND_F0": "0SEND_F0 4SEND_F0"}, IncompleteSchedule, 0, 2, "4SEND_F0"),
    ({"0SEND_F0": "0RECV_F0 0SEND_F0"}, UnmatchedTransfer, 0, 1, "0RECV_F0"),
    ({"1BW0": "1SEND_F0 1BW0"}, UnmatchedTransfer, 1, 3, "1SEND_F0"),
    ({"1BW0": "1RECV_B0 1BW0"}, UnmatchedTransfer, 1, 3, "1RECV_B0"),
    ({"0BW1": "0BW1 0SEND_B1"}, UnmatchedTransfer, 0, 8, "0SEND_B1"),
]

MISORDERED = [
    # too late or too early on one rank
    ({"1RECV_F0 1F0": "1F0 1RECV_F0"}, DependencyViolation, 1, 0, "1F0"),
    ({"0F0 0SEND_F0": "0SEND_F0 0F0"}, DependencyViolation, 0, 0, "0SEND_F0"),
    ({"0RECV_B1 0BW1": "0BW1 0RECV_B1"}, DependencyViolation, 0, 6, "0BW1"),
    ({"1BW1 1SEND_B1": "1SEND_B1 1BW1"}, DependencyViolation, 1, 6, "1SEND_B1"),
    ({"1BW0": "", "1F0 ": "1BW0 1F0 "}, DependencyViolation, 1, 1, "1BW0"),
    # changed places in a channel
    ({"1RECV_F0 1F0 1RECV_F1": "1RECV_F1 1RECV_F0 1F0"}, UnmatchedTransfer, 1, 1, "1RECV_F0"),
    ({"0RECV_B0 0BW0 0RECV_B1": "0RECV_B1 0RECV_B0 0BW0"}, UnmatchedTransfer, 0, 5, "0RECV_B0"),
    # each sends before it receives
    ({"1RECV_F1 1BW0 1F1 1SEND_B0": "1BW0 1SEND_B0 1RECV_F1 1F1"}, Deadlock, 0, 3, "0SEND_F1"),
]


@pytest.mark.parametrize(
    ("changes", "kind", "rank", "step", "action"), [*MISSING_OR_DOUBLED, *MISPLACED, *MISORDERED]
)
def test_each_fault_is_named(
    changes: dict[str, str], kind: type[ScheduleError], rank: int, step: int, action: str
) -> None:
    verify(lowered(*GOOD))
    with pytest.raises(ScheduleError) as caught:
        verify(lowered(*changed(GOOD, changes)))
    error = caught.value
    assert type(error) is kind, error
    assert (error.rank, error.step, error.action) == (rank, step, action), error
    assert f"rank {rank}, step {step}: " in str(error)
    with pytest.raises(kind):
        execution_order(lowered(*changed(GOOD, changes)))


@pytest.mark.parametrize(
    ("changes", "rank", "step", "action"),
    [
        ({"1F0 2F0": "1F0 1SEND_F0 2RECV_F0 2F0"}, 1, 2, "1SEND_F0"),
        ({"2BW0 1BW0": "2BW0 2SEND_B0 1RECV_B0 1BW0"}, 1, 6, "2SEND_B0"),
    ],
)
def test_a_rank_sends_nothing_to_itself(
    changes: dict[str, str], rank: int, step: int, action: str
) -> None:
    verify(lowered(*TURN, owners=V))
    with pytest.raises(UnmatchedTransfer) as caught:
        verify(lowered(*changed(TURN, changes), owners=V))
    assert (caught.value.rank, caught.value.step, caught.value.action) == (rank, step, action)


def test_an_earlier_stage_of_the_same_rank_comes_first() -> None:
    with pytest.raises(DependencyViolation) as caught:
        verify(lowered(*changed(TURN, {"1F0 2F0": "2F0 1F0"}), owners=V))
    assert (caught.value.rank, caught.value.step, caught.value.action) == (1, 1, "2F0")


def test_a_deadlock_of_rendezvous_names_both_sides() -> None:
    lists = changed(GOOD, {"1RECV_F1 1BW0 1F1 1SEND_B0": "1BW0 1SEND_B0 1RECV_F1 1F1"})
    with pytest.raises(Deadlock) as caught:
        verify(lowered(*lists))
    assert "rank 0, step 3: 0SEND_F1 waits for 1RECV_F1 of rank 1" in str(caught.value)
    assert "rank 1, step 3: 1SEND_B0 waits for 0RECV_B0 of rank 0" in str(caught.value)


EXCHANGED = ("0F0 0SEND_F0 0F1 0SEND_F1_0RECV_B0 0BW0 0RECV_B1 0BW1",
             "1RECV_F0 1F0 1BW0 1SEND_B0_1RECV_F1 1F1 1BW1 1SEND_B1")  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "kind", "rank", "step", "action"),
    [
        ({"1SEND_B0_1RECV_F1": "1SEND_B0 1RECV_F1"}, UnmatchedTransfer, 0, 3, "0SEND_F1_0RECV_B0"),
        ({"0SEND_F1_0RECV_B0": "0SEND_F1 0RECV_B0"}, UnmatchedTransfer, 1, 3, "1SEND_B0_1RECV_F1"),
        ({"0SEND_F1_0RECV_B0": "0SEND_F1"}, UnmatchedTransfer, 1, 3, "1SEND_B0_1RECV_F1"),
        ({"0F1 0SEND_F1_0RECV_B0": "0SEND_F1_0RECV_B0 0F1"},
         DependencyViolation, 0, 2, "0SEND_F1_0RECV_B0"),
        ({"1BW0 1SEND_B0_1RECV_F1 1F1": "1BW0 1F1 1SEND_B0_1RECV_F1"},
         DependencyViolation, 1, 3, "1F1"),
        ({"0SEND_F1_0RECV_B0 0BW0": "0BW0 0SEND_F1_0RECV_B0"}, DependencyViolation, 0, 3, "0BW0"),
        ({"0SEND_F1_0RECV_B0": "0SEND_F1_0RECV_B1", "0RECV_B1 0BW1": "0RECV_B0 0BW1"},
         UnmatchedTransfer, 0, 5, "0RECV_B0"),
    ],
)  # fmt: skip
def test_exchanges_have_a_mirror_image_and_stand_in_order(
    changes: dict[str, str], kind: type[ScheduleError], rank: int, step: int, action: str
) -> None:
    verify(lowered(*EXCHANGED))
    with pytest.raises(ScheduleError) as caught:
        verify(lowered(*changed(EXCHANGED, changes)))
    assert type(caught.value) is kind, caught.value
    assert (caught.value.rank, caught.value.step, caught.value.action) == (rank, step, action)


REDUCED = (
    "0F0 0SEND_F0 0RECV_B0 0B0 0W0 0REDUCE", "1RECV_F0 1F0 1BW0 1SEND_B0 1REDUCE"
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "kind", "rank", "step", "action"),
    [
        ({"1REDUCE": ""}, IncompleteSchedule, 1, 4, "1REDUCE"),
        ({"0REDUCE": "0REDUCE 0REDUCE"}, IncompleteSchedule, 0, 6, "0REDUCE"),
        ({"0REDUCE": "1REDUCE"}, IncompleteSchedule, 0, 5, "1REDUCE"),
        ({"0REDUCE": "0REDUCE 5REDUCE"}, IncompleteSchedule, 0, 6, "5REDUCE"),
        ({"0W0 0REDUCE": "0REDUCE 0W0"}, DependencyViolation, 0, 4, "0REDUCE"),
        ({"1BW0 1SEND_B0 1REDUCE": "1REDUCE 1BW0 1SEND_B0"}, DependencyViolation, 1, 2, "1REDUCE"),
    ],
)
def test_reductions_come_once_for_every_stage_after_its_last_backward(
    changes: dict[str, str], kind: type[ScheduleError], rank: int, step: int, action: str
) -> None:
    verify(lowered(*REDUCED))
    with pytest.raises(ScheduleError) as caught:
        verify(lowered(*changed(REDUCED, changes)))
    assert type(caught.value) is kind, caught.value
    assert (caught.value.rank, caught.value.step, caught.value.action) == (rank, step, action)


def test_a_pair_of_which_one_needs_the_other_is_a_dependency_violation() -> None:
    schedule = lowered("0F0 (0B0;0W0)")
    with pytest.raises(DependencyViolation) as caught:
        verify(schedule)
    assert (caught.value.rank, caught.value.step, caught.value.action) == (0, 1, "(0B0;0W0)")


@pytest.mark.parametrize(
    ("lists", "kind", "action"),
    [
        (("0F0 0SEND_F0", "1RECV_F0 1F0 1SEND_B0"), UnmatchedTransfer, "1SEND_B0"),
        (("0F0 0SEND_F0 0RECV_B0", "1RECV_F0 1F0"), UnmatchedTransfer, "0RECV_B0"),
        (("0F0", "1F0"), UnmatchedTransfer, "1F0"),
        (("0F0 0SEND_F0 0BW0", "1RECV_F0 1F0"), IncompleteSchedule, "0BW0"),
        (("0F0 0SEND_F0 0REDUCE", "1RECV_F0 1F0"), IncompleteSchedule, "0REDUCE"),
    ],
)
def test_a_forward_only_schedule_sends_forward_only(
    lists: tuple[str, ...], kind: type[ScheduleError], action: str
) -> None:
    placement = Placement.loop(2)
    verify(LoweredSchedule(rows("0F0 0SEND_F0", "1RECV_F0 1F0"), placement, forward_only=True))
    with pytest.raises(ScheduleError) as caught:
        verify(LoweredSchedule(rows(*lists), placement, forward_only=True))
    assert (type(caught.value), caught.value.action) == (kind, action)


def test_chunks_that_share_a_channel_keep_their_order() -> None:
    """Loop placement: stages 0 and 2 of rank 0 both send to rank 1."""
    good = ("0F0 0SEND_F0 2RECV_F0 2F0 2SEND_F0 2RECV_B0 2BW0 2SEND_B0 0RECV_B0 0BW0",
            "1RECV_F0 1F0 1SEND_F0 3RECV_F0 3F0 3BW0 3SEND_B0 1RECV_B0 1BW0 1SEND_B0")  # fmt: skip
    verify(lowered(*good, owners=LOOP))
    swapped = changed(good, {"|1RECV_F0 1F0 1SEND_F0 3RECV_F0": "|3RECV_F0 1RECV_F0 1F0 1SEND_F0"})
    with pytest.raises(UnmatchedTransfer, match="order of sending") as caught:
        verify(lowered(*swapped, owners=LOOP))
    assert (caught.value.rank, caught.value.step, caught.value.action) == (1, 1, "1RECV_F0")
