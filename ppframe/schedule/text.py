"""The text grid: rows are time steps, columns ranks."""

from __future__ import annotations

from ppframe.errors import ScheduleError
from ppframe.schedule.action import Exchange, Transfer
from ppframe.schedule.excerpt import render
from ppframe.schedule.ir import LoweredSchedule, Schedule
from ppframe.schedule.verify import execution_order, verify
from ppframe.schedule.walk import ComputeWalk


def grid(schedule: Schedule | LoweredSchedule) -> str:
    """The schedule as text, a line per time step and a column per rank.

    Every action takes one step, the two ends of a message share one, and each stands in the first
    step in which it can run. A schedule that isn't legal is drawn as it is written: a rank's n-th
    action in line n.

    Args:
        schedule: with communication or without; it is not changed.

    Example:
        >>> from ppframe.schedule import build_schedule
        >>> print(grid(build_schedule("1f1b", ranks=2, microbatches=2)))
        step  rank 0  rank 1
           0  0F0
           1  0F1     1F0
           2          1BW0
           3  0BW0    1F1
           4          1BW1
           5  0BW1
    """
    cells = [
        {step: str(action) for step, action in zip(taken, row, strict=True)}
        for taken, row in zip(_steps(schedule), schedule.actions, strict=True)
    ]
    last = max((max(row, default=-1) for row in cells), default=-1)
    return render(cells, range(last + 1), range(len(cells)))


def _steps(schedule: Schedule | LoweredSchedule) -> list[list[int]]:
    """For each rank the step of each of its actions."""
    try:
        verify(schedule)
    except ScheduleError:
        return [list(range(len(row))) for row in schedule.actions]
    if isinstance(schedule, Schedule):
        return ComputeWalk(schedule, durations=None).starts
    return _lowered_steps(schedule)


def _lowered_steps(schedule: LoweredSchedule) -> list[list[int]]:
    taken: list[list[int]] = [[] for _ in schedule.actions]
    order = iter(execution_order(schedule))
    for rank, index in order:
        together = [rank]
        if isinstance(schedule.actions[rank][index], Transfer | Exchange):
            together.append(next(order)[0])
        step = max(taken[member][-1] + 1 if taken[member] else 0 for member in together)
        for member in together:
            taken[member].append(step)
    return taken
