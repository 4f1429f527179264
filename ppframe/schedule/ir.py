"""Schedule and LoweredSchedule: which stage computes which microbatch when, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Final, Literal, final

from ppframe.errors import ScheduleError
from ppframe.schedule.action import Action, Compute, Overlap, Reduce, parts
from ppframe.schedule.placement import Placement

Rows = tuple[tuple[Action, ...], ...]
"""For each rank its actions, in order."""


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """A compute-only schedule: for each rank the actions it runs, in order.

    Args:
        actions: for each rank its actions.
        placement: rank of each stage.
        name: what it is called, such as the name of its generator.
        forward_only: whether it has forwards only, as for evaluation.

    Raises:
        ScheduleError: the number of ranks isn't that of the placement.

    Example:
        >>> one = Schedule(((Action.parse("0F0"), Action.parse("0BW0")),), Placement.loop(1))
        >>> one.ranks, one.num_stages, one.num_microbatches, one.rank_of(0, 0)
        (1, 1, 1, 0)
    """

    actions: Rows
    placement: Placement
    name: str = ""
    forward_only: bool = False
    num_microbatches: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _settle(self)

    @property
    def ranks(self) -> int:
        """Number of pipeline ranks (P)."""
        return self.placement.ranks

    @property
    def num_stages(self) -> int:
        """Number of stages (S)."""
        return self.placement.num_stages

    @property
    def chunks_per_rank(self) -> int:
        """Stages of each rank (V)."""
        return self.placement.chunks_per_rank

    def rank_of(self, stage: int, microbatch: int) -> int:  # noqa: ARG002 (two chains ask it)
        """The rank on which a stage runs for a microbatch."""
        return self.placement.owners[stage]

    def chain(self, microbatch: int) -> int:  # noqa: ARG002
        """Which of the model's chains through the ranks a microbatch takes; there is one, 0."""
        return 0


@final
@dataclass(frozen=True, slots=True)
class LoweredSchedule:
    """A schedule with communication and reduction placed: the thing that is executed.

    Args:
        actions: for each rank its actions.
        placement: rank of each stage.
        name: what it is called.
        forward_only: whether it has forwards only, as for evaluation.

    Raises:
        ScheduleError: the number of ranks isn't that of the placement.
    """

    actions: Rows
    placement: Placement
    name: str = ""
    forward_only: bool = False
    num_microbatches: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _settle(self)

    @property
    def ranks(self) -> int:
        """Number of pipeline ranks (P)."""
        return self.placement.ranks

    @property
    def num_stages(self) -> int:
        """Number of stages (S)."""
        return self.placement.num_stages

    @property
    def chunks_per_rank(self) -> int:
        """Stages of each rank (V)."""
        return self.placement.chunks_per_rank

    def rank_of(self, stage: int, microbatch: int) -> int:  # noqa: ARG002 (two chains ask it)
        """The rank on which a stage runs for a microbatch."""
        return self.placement.owners[stage]

    def chain(self, microbatch: int) -> int:  # noqa: ARG002
        """Which of the model's chains through the ranks a microbatch takes; there is one, 0."""
        return 0


AnySchedule = Schedule | LoweredSchedule


def _settle(schedule: AnySchedule) -> None:
    """Make the rows tuples, check their number, and count the microbatches."""
    rows = tuple(map(tuple, schedule.actions))
    object.__setattr__(schedule, "actions", rows)
    if len(rows) != schedule.placement.ranks:
        raise ScheduleError(
            f"a schedule must have a list of actions for each of the {schedule.placement.ranks} "
            f"ranks of its placement, but has {len(rows)}."
        )
    highest = max(map(_highest_microbatch, rows), default=-1)
    object.__setattr__(schedule, "num_microbatches", highest + 1)


def _highest_microbatch(row: Sequence[Action]) -> int:
    highest = max((action[2] for action in row if type(action) is Compute), default=-1)
    pairs = (action for action in row if type(action) is Overlap)
    return max((part.microbatch for pair in pairs for part in pair), default=highest)
