"""Lowering: from a compute-only schedule to the lowered one that is executed."""

from __future__ import annotations

from ppframe.schedule.ir import LoweredSchedule, Schedule
from ppframe.schedule.lowering.transfers import place_transfers

__all__ = ["lower"]


def lower(schedule: Schedule, *, reduce: bool = False, group: bool = False) -> LoweredSchedule:
    """The schedule with its communication placed.

    Args:
        schedule: a legal compute-only schedule.
        reduce: whether to place a REDUCE after each stage's last backward part.
        group: whether to join a send and a receive between the same two ranks into one exchange
            where both sides have them next to each other.
    """
    return place_transfers(schedule)
