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

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, final

from ppframe.schedule.action import (
    COMPUTE_KINDS,
    OTHER_END,
    Action,
    ActionKind,
    Compute,
    Transfer,
    parts,
)
from ppframe.schedule.bulk import transfers
from ppframe.schedule.ir import LoweredSchedule, Schedule
from ppframe.schedule.verify import prove_compute

_SENT: Final = {
    ActionKind.F: ActionKind.SEND_F,
    ActionKind.B: ActionKind.SEND_B,
    ActionKind.BW: ActionKind.SEND_B,
}
"""What sends on what a computation makes."""

_Keyed = list[tuple[int, Action]]


@final
class _Route(NamedTuple):
    """The messages of a stage in one direction.

    Args:
        turn: turn among the messages of one moment, in 0…2S−1; no two routes have the same. Two
            messages of one route and moment, of two chains, keep the order in which they are found.
        sends: by microbatch.
        receives: by microbatch.
        peers: receiving rank by microbatch.
    """

    turn: int
    sends: list[Transfer]
    receives: list[Transfer]
    peers: list[int]


def place_transfers(schedule: Schedule) -> LoweredSchedule:
    """The schedule with SEND_F, RECV_F, SEND_B and RECV_B; a rank sends nothing to itself.

    Raises:
        ScheduleError: the schedule isn't legal.
    """
    walk = prove_compute(schedule)
    moment = 2 * schedule.num_stages
    # Keys put all actions in one order: by time; at the same time messages before computations.
    # Of messages at the same time those go first whose receivers come later along their way, so a
    # rank gives away what it has made before it waits for what its neighbour has.
    keyed: list[_Keyed] = [
        [((2 * start + 1) * moment, action) for start, action in zip(starts, row, strict=True)]
        for starts, row in zip(walk.starts, schedule.actions, strict=True)
    ]
    nothing: list[_Route | None] = [None] * schedule.num_stages
    sent = {send: _routes(schedule, send) for send in set(_SENT.values())}
    routes = {kind: sent[_SENT[kind]] if kind in _SENT else nothing for kind in COMPUTE_KINDS}
    for rank, (ends, row) in enumerate(zip(walk.ends, schedule.actions, strict=True)):
        for end, (stage, kind, microbatch) in _singles(ends, row):
            route = routes[kind][stage]
            if route is not None:
                key = 2 * end * moment + route.turn
                keyed[rank].append((key, route.sends[microbatch]))
                keyed[route.peers[microbatch]].append((key, route.receives[microbatch]))
    rows = tuple(tuple([action for _, action in sorted(row, key=_KEY)]) for row in keyed)
    return LoweredSchedule(
        rows, schedule.placement, schedule.name, schedule.forward_only, schedule.chains
    )


def _singles(ends: Sequence[int], row: Sequence[Action]) -> Iterable[tuple[int, Compute]]:
    """The computations of a list and when they end; pairs come apart."""
    single = [action for action in row if type(action) is Compute]
    if len(single) == len(row):
        return zip(ends, single, strict=True)
    timed = zip(ends, row, strict=True)
    return ((end, part) for end, action in timed for part in parts(action) if type(part) is Compute)


_KEY: Final = itemgetter(0)


def _routes(schedule: Schedule, send: ActionKind) -> list[_Route | None]:
    """For each stage its messages by this kind of send; None where there are none."""
    receive, offset = OTHER_END[send]
    count = schedule.num_microbatches
    owners = [schedule.owners(microbatch) for microbatch in range(count)]
    routes: list[_Route | None] = []
    for stage in range(schedule.num_stages):
        there = stage + offset
        if not 0 <= there < schedule.num_stages or owners[0][stage] == owners[0][there]:
            routes.append(None)
        else:
            peers = [ranks[there] for ranks in owners]
            turn = 2 * stage + 1 if offset < 0 else 2 * (schedule.num_stages - 1 - stage)
            both = transfers(send, stage, count), transfers(receive, there, count)
            routes.append(_Route(turn, *both, peers))
    return routes
