"""Verify: every illegal schedule is rejected and every legal one accepted, in linear time.

::

    compute only                             lowered
    [1] microbatches are numbered 0…M−1      [1]
    [2] each action once, on its rank        [2], transfers too; what it needs of its rank is before
    [3] no F, B or W is missing              [3]
                                             [4] messages have two ends, in one order per channel
    [5] a walk of all ranks comes to an end  [5] with sends that wait for their receives
"""

from __future__ import annotations

from ppframe.schedule.bulk import paused_collection
from ppframe.schedule.completeness import (
    require_complete,
    require_computations,
    require_known_microbatches,
)
from ppframe.schedule.faults import stuck, too_early
from ppframe.schedule.ir import LoweredSchedule, Schedule
from ppframe.schedule.ledger import Ledger
from ppframe.schedule.messages import require_matched
from ppframe.schedule.walk import ComputeWalk, LoweredWalk, walk_by_microbatch, walk_lowered


def verify(schedule: Schedule | LoweredSchedule) -> None:
    """Check that a schedule is legal: complete, in order, and able to run to its end.

    Sends are taken to wait for their receives, so a lowered schedule that passes needs no buffers
    to come to its end. The error names rank, step and action; of an action that is missing, the
    step is that of the one which lacks it.

    Raises:
        IncompleteSchedule: an action is missing, stands twice, or on a rank that doesn't own its
            stage; a stage or microbatch doesn't exist.
        DependencyViolation: an action stands before one of its own rank that it needs.
        UnmatchedTransfer: a message has one end only, or two messages change places.
        Deadlock: ranks wait for each other.
    """
    with paused_collection():
        if isinstance(schedule, Schedule):
            prove_compute(schedule)
        else:
            _prove_lowered(schedule)


def execution_order(lowered: LoweredSchedule) -> tuple[tuple[int, int], ...]:
    """(rank, index in the rank's list) of every action, in an order that one controller can walk.

    The order is the one in which `verify` proves that the schedule ends: ranks take turns, and the
    two ends of a message are neighbours, the send first; so are the two sides of an exchange. Where
    two ranks run the same stage, for two chains, its forwards come in the order of microbatches, if
    the schedule can be walked so.

    Raises:
        ScheduleError: as `verify`.

    Example:
        >>> from ppframe.schedule import build_schedule, lower
        >>> lowered = lower(build_schedule("1f1b", ranks=2, microbatches=1))
        >>> [str(lowered.actions[rank][index]) for rank, index in execution_order(lowered)]
        ['0F0', '0SEND_F0', '1RECV_F0', '1F0', '1BW0', '1SEND_B0', '0RECV_B0', '0BW0']
    """
    with paused_collection():
        ledger, walk = _prove_lowered(lowered)
        in_turn = walk_by_microbatch(ledger) if lowered.chains else None
        return tuple(map(ledger.place, walk.order if in_turn is None else in_turn))


def prove_compute(schedule: Schedule) -> ComputeWalk:
    """Verify a compute-only schedule; the walk proves that it ends, and has its times.

    Raises:
        ScheduleError: as `verify`.
    """
    require_computations(schedule)
    require_known_microbatches(schedule)
    require_complete(Ledger(schedule))
    walk = ComputeWalk(schedule)
    for wait in walk.waits:
        if wait.on == wait.rank:
            raise too_early(schedule.actions, wait.rank, wait.step, wait.missing)
    if walk.waits:
        raise stuck(schedule.actions, walk.waits)
    return walk


def _prove_lowered(lowered: LoweredSchedule) -> tuple[Ledger, LoweredWalk]:
    """Verify a lowered schedule; the walk proves that it ends."""
    require_known_microbatches(lowered)
    ledger = Ledger(lowered)
    require_complete(ledger)
    require_matched(ledger)
    ledger.require_local_order()
    walk = walk_lowered(ledger)
    if walk.waits:
        raise stuck(lowered.actions, walk.waits)
    return ledger, walk
