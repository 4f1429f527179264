"""How the memory of a rank grows and shrinks over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ppframe.schedule.action import ActionKind, singles_of
from ppframe.simulator.timeline import TimelineEntry

Gains: TypeAlias = Mapping[ActionKind, Sequence[float]]
"""What each kind adds to the memory of its rank, for each stage."""
Curve: TypeAlias = list[tuple[float, float]]
"""Times at which the level changes, and the level from then on."""


def gains_of(amounts: Sequence[float], shares: Sequence[float]) -> Gains:
    """F adds an activation; B frees all of it but a share, which W frees; BW frees it at once.

    Args:
        amounts: what a microbatch leaves in memory, for each stage.
        shares: part of it that W still needs, for each stage.
    """
    pairs = list(zip(amounts, shares, strict=True))
    return {
        ActionKind.F: [amount for amount, _ in pairs],
        ActionKind.B: [-amount * (1 - share) for amount, share in pairs],
        ActionKind.W: [-amount * share for amount, share in pairs],
        ActionKind.BW: [-amount for amount, _ in pairs],
    }


def memory_curve(entries: Iterable[TimelineEntry], gains: Gains, level: float = 0.0) -> Curve:
    """Level of a rank's memory over time.

    A forward takes its memory when it starts, a backward gives it back when it ends. The parts of
    an overlapped pair come one after the other, each with half of the time.

    Args:
        entries: computations of one rank, in the order of time.
        gains: what each kind adds.
        level: what is there from the beginning.

    Example:
        >>> from ppframe.schedule import Action
        >>> ran = [TimelineEntry(0, Action.parse(text), at, at + 1) for at, text in
        ...        enumerate(["0F0", "0F1", "0BW0", "0BW1"])]
        >>> memory_curve(ran, gains_of([1.0], [1.0]))
        [(0.0, 1.0), (1.0, 2.0), (3, 1.0), (4, 0.0)]
    """
    curve: Curve = []
    for _, action, start, end in entries:
        singles = tuple(singles_of(action))
        length = (end - start) / len(singles)
        for place, (stage, kind, _) in enumerate(singles):
            gain = gains[kind][stage]
            level += gain
            is_last = place == len(singles) - 1
            ends = end if is_last else start + (place + 1) * length
            curve.append((ends if gain < 0 else start + place * length, level))
    return curve
