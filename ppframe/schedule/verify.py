"""Verify: every illegal schedule is rejected, every legal one accepted, in linear time."""

from __future__ import annotations

from ppframe.errors import Deadlock
from ppframe.schedule.ir import LoweredSchedule, Schedule
from ppframe.schedule.walk import walk_compute, walk_lowered


def verify(schedule: Schedule | LoweredSchedule) -> None:
    """Check that a schedule is legal."""
    if isinstance(schedule, Schedule):
        waits = walk_compute(schedule).waits
    else:
        waits = walk_lowered(schedule).waits
    if waits:
        raise Deadlock(f"every rank must go on, but these wait: {waits}.")


def execution_order(lowered: LoweredSchedule) -> tuple[tuple[int, int], ...]:
    """(rank, index in the rank's list) of every action, in an order one controller can walk."""
    return tuple(walk_lowered(lowered).order)
