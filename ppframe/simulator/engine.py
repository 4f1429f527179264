"""Simulating a schedule: with costs per stage, or with durations that were measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TypeAlias

from ppframe.errors import ConfigError
from ppframe.schedule import Action, ActionKind, Compute, Overlap, verify
from ppframe.schedule.cost import UNIT_COST, Cost, PerStage
from ppframe.schedule.ir import AnySchedule
from ppframe.simulator.report import SimulationReport, build_report
from ppframe.simulator.timeline import COMPUTES
from ppframe.simulator.walk import Walk

_FIELDS = {
    ActionKind.F: "forward",
    ActionKind.B: "backward_input",
    ActionKind.W: "backward_weight",
    ActionKind.BW: "backward",
}


def simulate(schedule: AnySchedule, cost: Cost = UNIT_COST) -> SimulationReport:
    """Run a schedule on paper: every action as soon as its rank is free and its needs have come.

    A compute-only schedule has ideal communication: a hop delays only who needs the result. In a
    lowered schedule a rank also stands still in a receive until the message has come, in the order
    of its list; sends hold nobody, reductions take no time. An overlapped pair takes as long as its
    parts one after the other.

    Args:
        schedule: compute-only or lowered, with or without backward.
        cost: durations, latency and bytes.

    Returns:
        times in the unit of the cost.

    Raises:
        ConfigError: the cost gives numbers for another count of stages.
        ScheduleError: the schedule can't run to its end.

    Facts:
        Time and memory grow linearly with the number of actions.

    Example:
        >>> from ppframe.schedule import build_schedule
        >>> report = simulate(build_schedule("1f1b", ranks=4, microbatches=8))
        >>> report.makespan, round(report.bubble_fraction, 4), report.peak_in_flight
        (33.0, 0.2727, (4, 3, 2, 1))
    """
    num_stages = schedule.num_stages
    by_kind = {kind: cost.of_stages(field, num_stages) for kind, field in _FIELDS.items()}

    def duration(action: Action) -> float:
        if type(action) is Compute:
            return by_kind[action.kind][action.stage]
        return sum(map(duration, action)) if isinstance(action, Overlap) else 0.0

    return _report(schedule, [list(map(duration, row)) for row in _legal_rows(schedule)], cost)


Durations: TypeAlias = Mapping[Action, float] | Sequence[Sequence[float]]
"""By action, or for each rank one number for each action of its list."""


def replay(
    schedule: AnySchedule, durations: Durations, *, transfer: PerStage = 0.0
) -> SimulationReport:
    """Run a schedule on paper with durations that were measured, each action its own.

    It tells what a run would have taken with every rank on its own device, also when the actions
    were measured one after the other.

    Args:
        schedule: the schedule that was measured, compute-only or lowered.
        durations: of every computation; those of transfers and reductions are not read. An
            overlapped pair that is not in a mapping takes as long as its parts.
        transfer: latency of a hop between two ranks, by the stage that sends.

    Returns:
        times in the unit of the durations; bytes are 0.

    Raises:
        ConfigError: a duration is missing, negative or infinite, or `transfer` is no legal cost.
        ScheduleError: the schedule can't run to its end.

    Example:
        >>> from ppframe.schedule import Action, build_schedule
        >>> schedule = build_schedule("gpipe", ranks=1, microbatches=1)
        >>> replay(schedule, {Action.parse("0F0"): 0.25, Action.parse("0BW0"): 0.5}).makespan
        0.75
    """
    cost = Cost(0, 0, 0, transfer=transfer)
    rows = _legal_rows(schedule)
    if isinstance(durations, Mapping):
        measured = [[_looked_up(durations, action) for action in row] for row in rows]
    elif list(map(len, durations)) == list(map(len, rows)):
        measured = [list(map(_counted, *pair)) for pair in zip(rows, durations, strict=True)]
    else:
        raise ConfigError(
            f"durations must give one number per action of each rank, but give "
            f"{list(map(len, durations))} (actions {list(map(len, rows))}). Leave none out."
        )
    for action, duration in zip(chain(*rows), chain(*measured), strict=True):
        if not (math.isfinite(duration) and duration >= 0):
            raise ConfigError(
                f"duration of {action} must be a finite number, 0 or more, but is {duration}."
            )
    return _report(schedule, measured, cost)


def _report(
    schedule: AnySchedule, durations: Sequence[Sequence[float]], cost: Cost
) -> SimulationReport:
    walk = Walk(schedule, durations, cost.of_stages("transfer", schedule.num_stages))
    return build_report(walk.entries, walk.critical_path(), cost, schedule.num_stages)


def _legal_rows(schedule: AnySchedule) -> tuple[tuple[Action, ...], ...]:
    """The lists of a schedule, once no action asks for a stage that isn't there."""
    rows = schedule.actions
    stages = map(attrgetter("stage"), chain(*rows))
    seconds = (action.second.stage for action in chain(*rows) if type(action) is Overlap)
    if max(chain(stages, seconds), default=0) >= schedule.num_stages:
        verify(schedule)
    return rows


def _counted(action: Action, duration: float) -> float:
    return duration if type(action) in COMPUTES else 0.0


def _looked_up(durations: Mapping[Action, float], action: Action) -> float:
    """Duration of an action: its own, or that of its parts."""
    if type(action) not in COMPUTES:
        return 0.0
    if action in durations:
        return durations[action]
    if isinstance(action, Overlap):
        return sum(_looked_up(durations, part) for part in action)
    raise ConfigError(
        f"durations must give one for every computation, but have none for {action} "
        f"({len(durations)} given). Measure a step of this very schedule."
    )
