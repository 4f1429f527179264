"""What is raised about a schedule that isn't legal, with the place marked in an excerpt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar, final

from ppframe.errors import Deadlock, DependencyViolation, ScheduleError
from ppframe.schedule.action import Action
from ppframe.schedule.excerpt import excerpt
from ppframe.schedule.rows import Rows

_E = TypeVar("_E", bound=ScheduleError)


@final
class Wait(NamedTuple):
    """A rank that can't go on.

    Args:
        rank: the rank.
        step: index in its list of the action that waits.
        action: that action.
        missing: actions of which one must run first.
        on: rank that has to run it.
    """

    rank: int
    step: int
    action: Action
    missing: tuple[Action, ...]
    on: int


def fault(kind: type[_E], rows: Rows, message: str, *, rank: int, step: int, action: Action) -> _E:
    """An error about one place.

    Args:
        kind: class of the error.
        rows: the lists of the schedule.
        message: what must hold, what it is, what to change.
        rank: rank of the place.
        step: index in the rank's list; its length is the place behind the end.
        action: what is at fault there, also when it is missing.
    """
    text = f"rank {rank}, step {step}: {message}\n{excerpt(rows, rank, step)}"
    return kind(text, rank=rank, step=step, action=action)


def too_early(rows: Rows, rank: int, step: int, missing: Sequence[Action]) -> DependencyViolation:
    """An action that stands before one of its own rank that it needs."""
    action = rows[rank][step]
    message = (
        f"action {action} must come after {_or(missing)}, but comes before it on the same rank. "
        "Change their order."
    )
    return fault(DependencyViolation, rows, message, rank=rank, step=step, action=action)


def stuck(rows: Rows, waits: Sequence[Wait]) -> Deadlock:
    """Ranks that wait for each other; the place is the first rank that waits in the circle."""
    first = _in_circle(waits)
    lines = [
        f"  rank {wait.rank}, step {wait.step}: {wait.action} waits for {_or(wait.missing)} "
        f"of rank {wait.on}"
        for wait in sorted(waits)
    ]
    message = "\n".join(
        ("ranks must be able to go on to their end, but wait for each other:", *lines)
    )
    return fault(
        Deadlock, rows, f"{message}\nChange their order.",
        rank=first.rank, step=first.step, action=first.action,
    )  # fmt: skip


def _in_circle(waits: Sequence[Wait]) -> Wait:
    """The wait of the lowest rank that, through others, waits for itself."""
    by_rank = {wait.rank: wait for wait in waits}
    visited: list[int] = []
    rank = min(by_rank)
    while rank not in visited:
        visited.append(rank)
        rank = by_rank[rank].on
    return by_rank[min(visited[visited.index(rank) :])]


def _or(actions: Sequence[Action]) -> str:
    return " or ".join(map(str, actions))
