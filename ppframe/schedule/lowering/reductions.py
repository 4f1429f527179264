"""Reductions: a stage's gradients are reduced as soon as its last backward part is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ppframe.schedule.action import Action, ActionKind, Exchange, Reduce, Transfer, parts
from ppframe.schedule.dependencies import WEIGHT_GRADIENT
from ppframe.schedule.ir import LoweredSchedule


def place_reductions(lowered: LoweredSchedule) -> LoweredSchedule:
    """The schedule with a REDUCE for every stage, on every rank that runs it.

    A send of what the last backward made goes first: another rank waits for it.

    ::

        ... 0BW7 0SEND_B7 0REDUCE
    """
    if lowered.forward_only:
        return lowered
    return replace(lowered, actions=tuple(map(_with_reductions, lowered.actions)))


def _with_reductions(row: Sequence[Action]) -> tuple[Action, ...]:
    last = {
        part.stage: step
        for step, action in enumerate(row)
        for part in parts(action)
        if part.kind in WEIGHT_GRADIENT
    }
    places: dict[int, list[Action]] = {}
    for stage, step in last.items():
        places.setdefault(_after_send(row, step, stage), []).append(Reduce(stage))
    with_reductions: list[Action] = []
    for step, action in enumerate(row):
        with_reductions.append(action)
        with_reductions.extend(places.get(step, ()))
    return tuple(with_reductions)


def _after_send(row: Sequence[Action], step: int, stage: int) -> int:
    """The step at which a stage has sent what it made; the same step where it sends nothing."""
    for later in range(step + 1, len(row)):
        if not isinstance(row[later], Transfer | Exchange):
            break
        for part in parts(row[later]):
            if (part.stage, part.kind) == (stage, ActionKind.SEND_B):
                return later
    return step
