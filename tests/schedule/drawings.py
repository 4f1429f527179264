"""Grids and lists of actions written out in tests."""

from __future__ import annotations

from textwrap import dedent

from ppframe.schedule import Action, LoweredSchedule, Placement, Schedule, dependencies, grid
from ppframe.schedule.action import parts


def rows(*lines: str) -> tuple[tuple[Action, ...], ...]:
    """A list of actions for each line, blanks between."""
    return tuple(tuple(map(Action.parse, line.split())) for line in lines)


def compute(
    *lines: str,
    owners: tuple[int, ...] = (),
    forward_only: bool = False,
    chains: tuple[int, ...] = (),
) -> Schedule:
    """A compute-only schedule; without `owners`, stage s is on rank s."""
    placement = Placement(owners or tuple(range(len(lines))))
    return Schedule(rows(*lines), placement, forward_only=forward_only, chains=chains)


def lowered(*lines: str, owners: tuple[int, ...] = ()) -> LoweredSchedule:
    """A lowered schedule; without `owners`, stage s is on rank s."""
    return LoweredSchedule(rows(*lines), Placement(owners or tuple(range(len(lines)))))


def assert_same_grid(schedule: Schedule | LoweredSchedule, drawing: str) -> None:
    """Compare with a drawing in which every column is a rank and `.` is a bubble."""
    wanted = [line.split() for line in dedent(drawing).strip().splitlines()]
    actual = _cells(schedule)
    if actual == wanted:
        return
    lines = []
    for step in range(max(len(actual), len(wanted))):
        is_, was = (table[step] if step < len(table) else [] for table in (actual, wanted))
        mark = " " if is_ == was else "≠"
        lines.append(f"{mark} {step:3d}  {' '.join(is_):40s} | {' '.join(was)}")
    raise AssertionError("\n".join(("  step  actual | wanted", *lines)))


def _cells(schedule: Schedule | LoweredSchedule) -> list[list[str]]:
    head, *lines = grid(schedule).splitlines()
    starts = [head.index(f"rank {rank}") for rank in range(schedule.ranks)]
    ends = [*starts[1:], None]
    return [
        [line[start:end].strip() or "." for start, end in zip(starts, ends, strict=True)]
        for line in lines
    ]


def happens_before(schedule: Schedule, first: str, second: str) -> bool:
    """Whether one action must come before another, whatever the speed of the ranks.

    It must where a chain leads from one to the other, of neighbours in a rank's list and of actions
    that need each other.
    """
    before: dict[str, set[str]] = {}
    present = {str(part) for row in schedule.actions for action in row for part in parts(action)}
    for row in schedule.actions:
        previous: set[str] = set()
        for action in row:
            needs = dependencies(action, schedule.num_stages)
            needed = {str(choice) for need in needs for choice in need} & present
            pair = {str(part) for part in parts(action)}
            before |= dict.fromkeys(pair, needed | previous)
            previous = pair
    waiting, seen = [second], set()
    while waiting:
        action = waiting.pop()
        waiting += before[action] - seen
        seen |= before[action]
    return first in seen


def assert_before(schedule: Schedule, first: str, second: str) -> None:
    """Check that one action happens before another."""
    assert happens_before(schedule, first, second), f"{first}, {second}\n{grid(schedule)}"
