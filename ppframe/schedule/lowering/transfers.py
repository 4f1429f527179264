"""Transfers: a send where a value is made, and its receive on the peer's list at that moment.

The moments are those of the schedule in unit costs. Every list is then a part of one common order
in which a send and its receive are neighbours, so the result can't deadlock, even when every send
waits for its receive. A receive is not put off until just before its use: two ranks that both
send first would then wait for each other.

::

    rank 0   F0 ─┐   F1            0F0  0SEND_F0  0F1 ...
    rank 1       └─► F0     →      1RECV_F0  1F0  ...
"""

from __future__ import annotations

from typing import Final

from ppframe.schedule.action import OTHER_END, Action, ActionKind, Transfer
from ppframe.schedule.ir import LoweredSchedule, Schedule
from ppframe.schedule.walk import singles_of, walk_compute

_SENT: Final = {
    ActionKind.F: ActionKind.SEND_F,
    ActionKind.B: ActionKind.SEND_B,
    ActionKind.BW: ActionKind.SEND_B,
}
"""What sends on what a computation makes."""


def place_transfers(schedule: Schedule) -> LoweredSchedule:
    """The schedule with SEND_F, RECV_F, SEND_B and RECV_B; a rank sends nothing to itself."""
    walk = walk_compute(schedule)
    ranks = schedule.ranks
    # Keys put all actions in one order: by time; at the same time messages before computations;
    # messages at the same time by their sender. No two entries of a list share a key.
    keyed: list[list[tuple[int, Action]]] = [
        [((2 * start + 1) * ranks, action) for start, action in zip(starts, row, strict=True)]
        for starts, row in zip(walk.starts, schedule.actions, strict=True)
    ]
    for rank, (ends, row) in enumerate(zip(walk.ends, schedule.actions, strict=True)):
        for end, action in zip(ends, row, strict=True):
            for stage, kind, microbatch in singles_of(action):
                _add_message(schedule, keyed, 2 * end * ranks + rank, stage, kind, microbatch)
    rows = tuple(tuple(a for _, a in sorted(r, key=lambda entry: entry[0])) for r in keyed)
    return LoweredSchedule(rows, schedule.placement, schedule.name, schedule.forward_only)


def _add_message(schedule, keyed, key, stage, kind, microbatch) -> None:  # type: ignore
    send = _SENT.get(kind)
    if send is None:
        return
    receive, offset = OTHER_END[send]
    there = stage + offset
    if not 0 <= there < schedule.num_stages:
        return
    rank, peer = schedule.rank_of(stage, microbatch), schedule.rank_of(there, microbatch)
    if rank != peer:
        keyed[rank].append((key, Transfer._make((stage, send, microbatch))))
        keyed[peer].append((key, Transfer._make((there, receive, microbatch))))
