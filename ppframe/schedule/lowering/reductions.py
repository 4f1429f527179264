"""Reductions: a stage's gradients are reduced as soon as its last backward part is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ppframe.schedule.action import SEND_KINDS, Action, Exchange, Reduce, Transfer, parts
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
        places.setdefault(_after_sends(row, step), []).append(Reduce(stage))
    with_reductions: list[Action] = []
    for step, action in enumerate(row):
        with_reductions.append(action)
        with_reductions.extend(places.get(step, ()))
    return tuple(with_reductions)


def _after_sends(row: Sequence[Action], step: int) -> int:
    """The step itself, or that of the last of the sends that follow it directly."""
    while step + 1 < len(row) and _sends(row[step + 1]):
        step += 1
    return step


def _sends(action: Action) -> bool:
    return (
        action.kind in SEND_KINDS if isinstance(action, Transfer) else isinstance(action, Exchange)
    )
