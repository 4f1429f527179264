"""When each action runs: the form that predicted and measured timelines share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias, final

from ppframe.schedule import Action, Compute, Overlap, Transfer
from ppframe.schedule.action import parts, singles_of

COMPUTES: Final = (Compute, Overlap)
"""The actions that take a rank's time."""


@final
class TimelineEntry(NamedTuple):
    """One action of one rank, and when it runs.

    A named tuple, for a big schedule has a million of them.

    Args:
        rank: pipeline rank that runs it.
        action: the action.
        start: when it starts, in the unit of the cost; a receive starts when its rank is ready.
        end: when its rank goes on; for a receive, when the message has arrived.

    Example:
        >>> from ppframe.schedule import Action
        >>> entry = TimelineEntry(1, Action.parse("2F0"), 3.0, 4.5)
        >>> entry.name, entry.duration, entry.is_compute
        ('r1/2_F_0', 1.5, True)
    """

    rank: int
    action: Action
    start: float
    end: float

    @property
    def duration(self) -> float:
        """End less start."""
        return self.end - self.start

    @property
    def is_compute(self) -> bool:
        """Whether its rank computes in this time; in all others it waits or does nothing."""
        return type(self.action) in COMPUTES

    @property
    def name(self) -> str:
        """`r{rank}/{stage}_{kind}_{microbatch}`; the two parts of a pair are joined by `&`."""
        return f"r{self.rank}/" + "&".join(_part_name(part) for part in parts(self.action))


Timeline: TypeAlias = Iterable[TimelineEntry]


def num_stages_of(entries: Timeline) -> int:
    """One more than the highest stage among computations; 1 where there are none."""
    return 1 + max((stage for e in entries for stage, _, _ in singles_of(e.action)), default=0)


def scaled(timeline: Timeline, factor: float) -> tuple[TimelineEntry, ...]:
    """The same with all times multiplied, such as from units of a forward to seconds.

    Example:
        >>> from ppframe.schedule import Action
        >>> [entry] = scaled([TimelineEntry(0, Action.parse("0F0"), 1.0, 3.0)], 0.5)
        >>> entry.start, entry.end
        (0.5, 1.5)
    """
    return tuple(
        TimelineEntry(rank, action, start * factor, end * factor)
        for rank, action, start, end in timeline
    )


def microbatch_of(action: Action) -> int | None:
    """Microbatch of a single action; a reduction has none."""
    return action.microbatch if isinstance(action, Compute | Transfer) else None


def _part_name(action: Action) -> str:
    microbatch = microbatch_of(action)
    return f"{action.stage}_{action.kind.value}" + ("" if microbatch is None else f"_{microbatch}")
