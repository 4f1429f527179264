"""Lowered schedules with one transfer changed, at every place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ppframe.errors import (
    Deadlock,
    DependencyViolation,
    IncompleteSchedule,
    ScheduleError,
    UnmatchedTransfer,
)
from ppframe.schedule import LoweredSchedule, Transfer, lower, verify
from tests.schedule.test_mutations import (
    SCHEDULES,
    Fault,
    assert_all_found,
    instead,
    places,
    with_row,
    without,
)

LOWERED = {name: lower(schedule) for name, schedule in SCHEDULES.items()}


def transfers(lowered: LoweredSchedule) -> Iterator[tuple[int, int, Transfer]]:
    for rank, step, action in places(lowered):
        if isinstance(action, Transfer):
            yield rank, step, action


def place_of(lowered: LoweredSchedule, action: str) -> tuple[int, int]:
    return next((rank, step) for rank, step, other in places(lowered) if str(other) == action)


def dropped(lowered: LoweredSchedule) -> Iterator[Fault]:
    """The end that is left is named."""
    for place in transfers(lowered):
        broken = without(lowered, place)
        left = str(place[2].other_end)
        yield Fault(broken, UnmatchedTransfer, *place_of(lowered, left), left)


def both_ends_dropped(lowered: LoweredSchedule) -> Iterator[Fault]:
    """The computation that goes without is named."""
    for place in transfers(lowered):
        action = place[2]
        if action.is_send:
            continue
        other = action.other_end
        broken = without(lowered, place)
        broken = without(broken, (*place_of(broken, str(other)), other))
        stage, microbatch = action.stage, action.microbatch
        users = [f"{stage}F{microbatch}"]
        if action.kind.value == "RECV_B":
            users = [f"{stage}BW{microbatch}", f"{stage}B{microbatch}"]
        user = next(str(a) for _, _, a in places(broken) if str(a) in users)
        yield Fault(broken, UnmatchedTransfer, *place_of(broken, user), user)


def doubled(lowered: LoweredSchedule) -> Iterator[Fault]:
    for rank, step, action in transfers(lowered):
        broken = instead(lowered, (rank, step, action), action, action)
        yield Fault(broken, UnmatchedTransfer, rank, step + 1, str(action))


def on_another_rank(lowered: LoweredSchedule) -> Iterator[Fault]:
    for place in transfers(lowered):
        other = (place[0] + 1) % lowered.ranks
        moved = without(lowered, place)
        broken = with_row(moved, other, [*moved.actions[other], place[2]])
        step = len(moved.actions[other])
        yield Fault(broken, IncompleteSchedule, other, step, str(place[2]))


def of_a_stray_microbatch(lowered: LoweredSchedule) -> Iterator[Fault]:
    for rank, step, action in transfers(lowered):
        for stray in (lowered.num_microbatches, 123_456_789):
            other = Transfer(action.stage, action.kind, stray)
            broken = instead(lowered, (rank, step, action), other)
            yield Fault(broken, IncompleteSchedule, rank, step, str(other))


def received_after_its_use(lowered: LoweredSchedule) -> Iterator[Fault]:
    for rank, step, action in transfers(lowered):
        if action.is_send:
            continue
        row = list(lowered.actions[rank])
        kinds = ("F",) if action.kind.value == "RECV_F" else ("B", "BW")
        users = [f"{action.stage}{kind}{action.microbatch}" for kind in kinds]
        use = next(at for at, other in enumerate(row) if str(other) in users)
        later = [*row[:step], *row[step + 1 : use + 1], action, *row[use + 1 :]]
        broken = with_row(lowered, rank, later)
        if in_order(broken, rank):
            yield Fault(broken, DependencyViolation, rank, use - 1, str(row[use]))


def in_order(lowered: LoweredSchedule, rank: int) -> bool:
    """Whether what a rank receives from each other, forward and backward, is in order."""
    seen: dict[tuple[int, str], int] = {}
    for action in lowered.actions[rank]:
        if isinstance(action, Transfer) and not action.is_send:
            sender, step = place_of(lowered, str(action.other_end))
            if step < seen.get((sender, action.kind.value), -1):
                return False
            seen[sender, action.kind.value] = step
    return True


def sent_before_it_is_made(lowered: LoweredSchedule) -> Iterator[Fault]:
    for rank, step, action in transfers(lowered):
        row = list(lowered.actions[rank])
        kinds = ("F",) if action.kind.value == "SEND_F" else ("B", "BW")
        makers = [f"{action.stage}{kind}{action.microbatch}" for kind in kinds]
        made = [at for at, other in enumerate(row) if str(other) in makers]
        between = [a for a in row[made[0] + 1 : step] if isinstance(a, Transfer) and a.is_send]
        if action.is_send and not between:
            sooner = [*row[: made[0]], action, *row[made[0] : step], *row[step + 1 :]]
            broken = with_row(lowered, rank, sooner)
            yield Fault(broken, DependencyViolation, rank, made[0], str(action))


CHANGES = [
    dropped, both_ends_dropped, doubled, on_another_rank, of_a_stray_microbatch,
    received_after_its_use, sent_before_it_is_made,
]  # fmt: skip


@pytest.mark.parametrize("name", LOWERED)
@pytest.mark.parametrize("change", CHANGES)
def test_lowered(name: str, change: Callable[[LoweredSchedule], Iterator[Fault]]) -> None:
    verify(LOWERED[name])
    assert_all_found(list(change(LOWERED[name])))


def test_there_are_hundreds() -> None:
    assert sum(len(list(change(low))) for change in CHANGES for low in LOWERED.values()) > 800


@pytest.mark.parametrize("name", LOWERED)
def test_two_receives_of_a_channel_that_change_places_are_found(name: str) -> None:
    lowered = LOWERED[name]
    for rank, step, action in transfers(lowered):
        row = list(lowered.actions[rank])
        for later in range(step + 1, len(row)):
            other = row[later]
            same = isinstance(other, Transfer) and other.kind is action.kind
            if action.is_send or not same:
                continue
            row[step], row[later] = row[later], row[step]
            with pytest.raises(ScheduleError) as caught:
                verify(with_row(lowered, rank, row))
            kinds = (UnmatchedTransfer, DependencyViolation, Deadlock)
            assert isinstance(caught.value, kinds)
            assert caught.value.rank is not None
            break
