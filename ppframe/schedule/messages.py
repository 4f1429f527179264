"""Messages: every send has its receive, in the same order on each channel.

A channel is a sending rank, a receiving rank and a direction, forward or backward.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NoReturn

from ppframe.errors import UnmatchedTransfer
from ppframe.schedule.action import OTHER_END, SEND_KINDS, ActionKind, Compute, Exchange, Transfer
from ppframe.schedule.faults import fault
from ppframe.schedule.ir import is_carried
from ppframe.schedule.ledger import NOWHERE, Ledger

_FORWARD: Final = (ActionKind.SEND_F, ActionKind.RECV_F)
_RECEIVES: Final = (ActionKind.RECV_F, ActionKind.RECV_B)


def require_matched(ledger: Ledger) -> None:
    """Check that each hop has its message, with two ends, in the order of sending.

    Raises:
        UnmatchedTransfer: a message has one end or none, or is between stages that hand nothing
            over; two messages of a channel change places; an exchange isn't mirrored.
    """
    for kind in OTHER_END:
        for stage in range(ledger.schedule.num_stages):
            _require_ends(ledger, stage, kind)
    for send in SEND_KINDS:
        _require_order(ledger, send)
    for row in ledger.schedule.actions:
        for action in row:
            if type(action) is Exchange:
                _require_mirror(ledger, action)


def _require_ends(ledger: Ledger, stage: int, kind: ActionKind) -> None:
    """Check one end of a stage's messages in one direction, for all microbatches."""
    found = ledger.positions(kind, stage)
    if not _hands_over(ledger, stage, kind):
        for position in found:
            if position != NOWHERE:
                _refuse(
                    ledger, position, "be between stages on two ranks, where something is handed on"
                )
    elif NOWHERE in found:
        missing = Transfer(stage, kind, found.index(NOWHERE))
        _refuse(ledger, _lacking(ledger, missing), f"have {missing} to go with it")


def _require_order(ledger: Ledger, send: ActionKind) -> None:
    """Check that what goes from one rank to another arrives in the order in which it is sent."""
    receive, offset = OTHER_END[send]
    channels: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for stage in range(ledger.schedule.num_stages):
        if not _hands_over(ledger, stage, send):
            continue
        ends = ledger.positions(receive, stage + offset), ledger.positions(send, stage)
        for owners, microbatches in ledger.chains.items():
            channel = channels.setdefault((owners[stage], owners[stage + offset]), [])
            channel.extend(zip(*([end[m] for m in microbatches] for end in ends), strict=True))
    for messages in channels.values():
        messages.sort()
        for (_, before), (here, after) in pairwise(messages):
            if after < before:
                last = ledger.action(before)
                _refuse(
                    ledger, here, f"be received in the order of sending, before that of {last},"
                )


def _require_mirror(ledger: Ledger, exchange: Exchange) -> None:
    mirror = exchange.mirror
    if ledger.action(ledger.position(mirror.send)) != mirror:
        rule = f"have its mirror image {mirror} on the other rank"
        _refuse(ledger, ledger.position(exchange.send), rule)


def _hands_over(ledger: Ledger, stage: int, kind: ActionKind) -> bool:
    """Whether a stage has messages of this kind."""
    schedule = ledger.schedule
    if schedule.forward_only and kind not in _FORWARD:
        return False
    other = stage + OTHER_END[kind][1]
    return 0 <= other < schedule.num_stages and is_carried(schedule, min(stage, other))


def _lacking(ledger: Ledger, missing: Transfer) -> int:
    """Position of what misses a transfer: its other end, or where both are gone, its consumer."""
    other = missing.other_end
    position = ledger.position(other)
    if position != NOWHERE:
        return position
    receive = missing if missing.kind in _RECEIVES else other
    made = ActionKind.F if receive.kind is ActionKind.RECV_F else ActionKind.B
    return ledger.position(Compute(receive.stage, made, receive.microbatch))


def _refuse(ledger: Ledger, position: int, rule: str) -> NoReturn:
    rank, step = ledger.place(position)
    rows = ledger.schedule.actions
    action = rows[rank][step]
    message = f"action {action} must {rule} but doesn't. Change the lists of both ranks."
    raise fault(UnmatchedTransfer, rows, message, rank=rank, step=step, action=action)
