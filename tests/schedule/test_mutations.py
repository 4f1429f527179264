"""Generated schedules with one thing changed: each change has its class, rank, step and action.

The changes are made at every place of small schedules where they are a fault, so that there are
thousands; what must be reported follows from the change alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from ppframe.errors import (
    DependencyViolation,
    IncompleteSchedule,
    ScheduleError,
)
from ppframe.schedule import (
    Action,
    ActionKind,
    Compute,
    LoweredSchedule,
    Schedule,
    build_schedule,
    verify,
)
from tests.schedule.drawings import compute

F, B, W, BW = ActionKind.F, ActionKind.B, ActionKind.W, ActionKind.BW

V_SCHEDULE = compute(
    "0F0 3F0 0F1 3BW0 3F1 0B0 3BW1 0BW1 0W0", "1F0 2F0 1F1 2F1 2BW0 1BW0 2BW1 1BW1",
    owners=(0, 1, 1, 0),
)  # fmt: skip
TWO_CHAINS = compute(
    "0F0 1F1 0F2 1BW1 1F3 0BW0 1B3 0BW2 1W3", "0F1 1F0 0F3 1B0 1F2 0BW1 1W0 1BW2 0B3 0W3",
    chains=(0, 1, 0, 1),
)  # fmt: skip
SCHEDULES = {
    "gpipe": build_schedule("gpipe", ranks=3, microbatches=3),
    "1f1b": build_schedule("1f1b", ranks=3, microbatches=4),
    "dora-dfs": build_schedule("dora-dfs", ranks=2, microbatches=4),
    "dora": build_schedule("dora", ranks=3, microbatches=4),
    "v": V_SCHEDULE,
    "two chains": TWO_CHAINS,
}


class Fault(NamedTuple):
    """A schedule with one change, and what verify must say of it."""

    schedule: Schedule | LoweredSchedule
    kind: type[ScheduleError]
    rank: int
    step: int | None
    action: str


Place = tuple[int, int, Action]


def places(schedule: Schedule | LoweredSchedule) -> Iterator[Place]:
    for rank, row in enumerate(schedule.actions):
        for step, action in enumerate(row):
            yield rank, step, action


def with_row(
    schedule: Schedule | LoweredSchedule, rank: int, row: list[Action]
) -> Schedule | LoweredSchedule:
    lists = [*schedule.actions]
    lists[rank] = tuple(row)
    return replace(schedule, actions=tuple(lists))


def without(schedule: Schedule | LoweredSchedule, place: Place) -> Schedule | LoweredSchedule:
    rank, step, _ = place
    row = list(schedule.actions[rank])
    return with_row(schedule, rank, row[:step] + row[step + 1 :])


def instead(
    schedule: Schedule | LoweredSchedule, place: Place, *actions: Action
) -> Schedule | LoweredSchedule:
    rank, step, _ = place
    row = list(schedule.actions[rank])
    return with_row(schedule, rank, [*row[:step], *actions, *row[step + 1 :]])


def dropped(schedule: Schedule) -> Iterator[Fault]:
    """The missing action is named, at the step of what lacks it."""
    for place in places(schedule):
        rank, _, action = place
        broken = without(schedule, place)
        partner = {F: (B, BW), B: (W,), W: (B,), BW: (F,)}[action.kind]
        row = broken.actions[rank]
        lacking = next(
            step
            for step, other in enumerate(row)
            if other.kind in partner and other[::2] == action[::2]  # type: ignore[index]
        )
        yield Fault(broken, IncompleteSchedule, rank, lacking, str(action))


def doubled(schedule: Schedule) -> Iterator[Fault]:
    for place in places(schedule):
        rank, step, action = place
        broken = instead(schedule, place, action, action)
        yield Fault(broken, IncompleteSchedule, rank, step + 1, str(action))


def doubled_otherwise(schedule: Schedule) -> Iterator[Fault]:
    """B or W beside BW, BW beside B."""
    for place in places(schedule):
        rank, step, action = place
        assert isinstance(action, Compute)
        for kind in {BW: (B, W), B: (BW,)}.get(action.kind, ()):
            extra = Compute(action.stage, kind, action.microbatch)
            broken = instead(schedule, place, action, extra)
            yield Fault(broken, IncompleteSchedule, rank, step + 1, str(extra))


def on_another_rank(schedule: Schedule) -> Iterator[Fault]:
    for place in places(schedule):
        rank, _, action = place
        other = (rank + 1) % schedule.ranks
        moved = without(schedule, place)
        step = len(moved.actions[other])
        broken = with_row(moved, other, [*moved.actions[other], action])
        yield Fault(broken, IncompleteSchedule, other, step, str(action))


def of_a_stray_microbatch(schedule: Schedule) -> Iterator[Fault]:
    for place in places(schedule):
        rank, step, action = place
        for stray in (schedule.num_microbatches, 77, 123_456_789):
            other = Action(action.stage, action.kind, stray)
            yield Fault(instead(schedule, place, other), IncompleteSchedule, rank, step, str(other))


def of_a_stage_that_is_not(schedule: Schedule) -> Iterator[Fault]:
    for place in places(schedule):
        rank, step, action = place
        assert isinstance(action, Compute)
        for stage in (schedule.num_stages, 123_456_789):
            other = Compute(stage, action.kind, action.microbatch)
            yield Fault(instead(schedule, place, other), IncompleteSchedule, rank, step, str(other))


def before_its_forward(schedule: Schedule) -> Iterator[Fault]:
    """A backward in front of its own forward, and W in front of its B."""
    for rank, row in enumerate(schedule.actions):
        for step, action in enumerate(row):
            needed = {B: F, BW: F, W: B}.get(action.kind)
            if needed is None:
                continue
            first = next(
                at for at, other in enumerate(row)
                if other.kind is needed and other[::2] == action[::2]  # type: ignore[index]
            )  # fmt: skip
            moved = [*row[:first], action, *row[first:step], *row[step + 1 :]]
            broken = with_row(schedule, rank, moved)
            yield Fault(broken, DependencyViolation, rank, first, str(action))


def without_a_microbatch(schedule: Schedule) -> Iterator[Fault]:
    for microbatch in range(schedule.num_microbatches - 1):
        lists = tuple(
            tuple(a for a in row if isinstance(a, Compute) and a.microbatch != microbatch)
            for row in schedule.actions
        )
        broken = replace(schedule, actions=lists)
        rank = schedule.rank_of(0, microbatch)
        yield Fault(broken, IncompleteSchedule, rank, len(lists[rank]), f"0F{microbatch}")


COMPUTE_CHANGES = [
    dropped, doubled, doubled_otherwise, on_another_rank, of_a_stray_microbatch,
    of_a_stage_that_is_not, before_its_forward, without_a_microbatch,
]  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("change", COMPUTE_CHANGES)
def test_compute_only(name: str, change: Callable[[Schedule], Iterator[Fault]]) -> None:
    schedule = SCHEDULES[name]
    verify(schedule)
    assert_all_found(list(change(schedule)))


def assert_all_found(faults: list[Fault]) -> None:
    assert faults
    for fault in faults:
        with pytest.raises(ScheduleError) as caught:
            verify(fault.schedule)
        error = caught.value
        found = (type(error), error.rank, error.step, error.action)
        assert found == fault[1:], f"{error}\nwanted {fault[1:]}"


def test_there_are_more_than_two_hundred() -> None:
    count = sum(len(list(c(s))) for c in COMPUTE_CHANGES for s in SCHEDULES.values())
    assert count > 1000
