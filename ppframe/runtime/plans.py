"""Plans: a pipeline's schedules by number of microbatches, built and proved at first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ppframe.errors import ScheduleError
from ppframe.runtime.executor import Executor
from ppframe.runtime.layout import Layout, example_schedule
from ppframe.schedule import (
    LoweredSchedule,
    Schedule,
    build_schedule,
    forward_only,
    lower,
    nearest_microbatches,
    verify,
)

Bind = Callable[[LoweredSchedule, bool], Executor]
"""(lowered schedule, whether it has no backward) → its executor."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule in its three forms: as made, with communication, bound."""

    schedule: Schedule
    lowered: LoweredSchedule
    executor: Executor


@final
class Plans:
    """The plans of a pipeline.

    Args:
        schedule: name of a generator, or a schedule, which fixes the number of microbatches.
        layout: ranks, chunks and placement.
        bind: makes the executor.
    """

    def __init__(self, schedule: str | Schedule, layout: Layout, bind: Bind) -> None:
        self._source = schedule
        self._layout = layout
        self._bind = bind
        self._training: dict[int, Plan] = {}
        self._forward: dict[int, Plan] = {}
        if isinstance(schedule, Schedule):
            self._example = schedule
            self.training(schedule.num_microbatches)
        else:
            self._example = example_schedule(schedule, layout.ranks, layout.chunks_per_rank)

    @property
    def fixed_microbatches(self) -> int | None:
        """The one number of microbatches that the schedule has, if it was given whole."""
        return self._source.num_microbatches if isinstance(self._source, Schedule) else None

    def training(self, num_microbatches: int) -> Plan:
        """Plan of a training step.

        Raises:
            ScheduleError: the schedule doesn't take this number of microbatches.
        """
        if num_microbatches not in self._training:
            self._training[num_microbatches] = self._plan(self._schedule(num_microbatches))
        return self._training[num_microbatches]

    def forward(self, num_microbatches: int) -> Plan:
        """Plan without backward, for any number of microbatches.

        It takes one chain only, where the user's own modules lie: nothing is copied for it.
        """
        if num_microbatches not in self._forward:
            schedule = forward_only(self._example.placement, num_microbatches)
            self._forward[num_microbatches] = self._plan(schedule, no_backward=True)
        return self._forward[num_microbatches]

    def nearest(self, num_microbatches: int) -> int:
        """The number of microbatches nearest to this one that the schedule takes."""
        if isinstance(self._source, Schedule):
            return self._source.num_microbatches
        layout = self._layout
        return nearest_microbatches(
            self._source, layout.ranks, num_microbatches, layout.chunks_per_rank
        )

    def _schedule(self, num_microbatches: int) -> Schedule:
        if not isinstance(self._source, Schedule):
            return build_schedule(
                self._source,
                self._layout.ranks,
                num_microbatches,
                chunks_per_rank=self._layout.chunks_per_rank,
            )
        if num_microbatches != self._source.num_microbatches:
            raise ScheduleError(
                f"the number of microbatches must be {self._source.num_microbatches}, as the "
                f"schedule has it, but is {num_microbatches}."
            )
        return self._source

    def _plan(self, schedule: Schedule, *, no_backward: bool = False) -> Plan:
        verify(schedule)
        lowered = lower(schedule)
        verify(lowered)
        return Plan(schedule, lowered, self._bind(lowered, no_backward))
