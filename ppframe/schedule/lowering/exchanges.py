"""Exchanges: a send and a receive between the same two ranks, joined into one.

Only where both ranks have the two side by side: whichever rank comes to the first of them finds the
other at its mate, with nothing in between, so joining them can't deadlock.

::

    rank 1   1F3  1SEND_F3  1RECV_B1  1BW1           1F3  1SEND_F3_1RECV_B1  1BW1
    rank 2   2BW1 2RECV_F3  2SEND_B1  2F3      →     2BW1 2SEND_B1_2RECV_F3  2F3
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from ppframe.schedule.action import EXCHANGE_KINDS, Action, Exchange, Transfer
from ppframe.schedule.ir import LoweredSchedule, peer_of

Place = tuple[int, int]
"""Rank and step."""


def group_exchanges(lowered: LoweredSchedule) -> LoweredSchedule:
    """The schedule with an exchange for every such pair; where pairs share a member, the first."""
    found = {
        (rank, exchange): step
        for rank in range(lowered.ranks)
        for step, exchange in _side_by_side(lowered, rank)
    }
    joined: dict[Place, Exchange] = {}
    taken: set[Place] = set()
    for (rank, exchange), step in found.items():
        peer = peer_of(lowered, exchange)
        there = found.get((peer, exchange.mirror))
        if there is None:
            continue
        members = {(rank, step), (rank, step + 1), (peer, there), (peer, there + 1)}
        if not members & taken:
            taken |= members
            joined[rank, step], joined[peer, there] = exchange, exchange.mirror
    rows = tuple(
        tuple(_with_exchanges(row, rank, joined, taken)) for rank, row in enumerate(lowered.actions)
    )
    return replace(lowered, actions=rows)


def _side_by_side(lowered: LoweredSchedule, rank: int) -> Iterator[tuple[int, Exchange]]:
    """Step and exchange of each send and receive that could be joined on this rank."""
    for step, pair in enumerate(pairwise(lowered.actions[rank])):
        ends = [action for action in pair if isinstance(action, Transfer)]
        ends.sort(key=lambda end: not end.is_send)
        if len(ends) == 2 and (ends[0].kind, ends[1].kind) in EXCHANGE_KINDS:
            exchange = Exchange(*ends)
            if peer_of(lowered, ends[0]) == peer_of(lowered, ends[1]):
                yield step, exchange


def _with_exchanges(
    row: tuple[Action, ...], rank: int, joined: dict[Place, Exchange], taken: set[Place]
) -> Iterator[Action]:
    for step, action in enumerate(row):
        if (rank, step) in joined:
            yield joined[rank, step]
        elif (rank, step) not in taken:
            yield action
