"""Lowering: from a compute-only schedule to the lowered one that is executed, pass by pass."""

from __future__ import annotations

from ppframe.schedule.bulk import paused_collection
from ppframe.schedule.ir import LoweredSchedule, Schedule
from ppframe.schedule.lowering.exchanges import group_exchanges
from ppframe.schedule.lowering.reductions import place_reductions
from ppframe.schedule.lowering.transfers import place_transfers

__all__ = ["lower"]


def lower(schedule: Schedule, *, reduce: bool = False, group: bool = False) -> LoweredSchedule:
    """The schedule with its communication placed: what is executed.

    Every pass takes a legal schedule and gives a legal one.

    Args:
        schedule: a compute-only schedule.
        reduce: whether to place a REDUCE after each stage's last backward part.
        group: whether to join a send and a receive between the same two ranks into one exchange
            where both ranks have them next to each other.

    Raises:
        ScheduleError: the schedule isn't legal, as `verify` says.

    Example:
        >>> from ppframe.schedule import build_schedule
        >>> for row in lower(build_schedule("1f1b", ranks=2, microbatches=1), reduce=True).actions:
        ...     print(*row)
        0F0 0SEND_F0 0RECV_B0 0BW0 0REDUCE
        1RECV_F0 1F0 1BW0 1SEND_B0 1REDUCE
    """
    with paused_collection():
        lowered = place_transfers(schedule)
        if group:
            lowered = group_exchanges(lowered)
        return place_reductions(lowered) if reduce else lowered
