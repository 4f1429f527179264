"""Slots: a dense number for everything that an action leaves behind or needs.

What is left behind is numbered rather than the actions themselves, because B and BW leave the same
gradient for a stage's input, and W and BW the same for its weights. The numbers of one kind and
stage follow each other by microbatch, so the needs of a million actions are a small table of
numbers, to which the microbatch is added.

::

    slot = (code(kind) · S + stage) · M + microbatch
"""

from __future__ import annotations

from typing import Final, final

from ppframe.schedule.action import ActionKind
from ppframe.schedule.dependencies import (
    ACTIVATION,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    Carried,
    Need,
    needs_of,
    never_carried,
)

_TRANSFERS: Final = (ActionKind.SEND_F, ActionKind.RECV_F, ActionKind.SEND_B, ActionKind.RECV_B)
_LEFT: Final = (ACTIVATION, INPUT_GRADIENT, WEIGHT_GRADIENT, *((kind,) for kind in _TRANSFERS))
KINDS: Final = (ActionKind.F, ActionKind.B, ActionKind.W, ActionKind.BW, *_TRANSFERS)
"""The kinds that have slots: those of one stage and one microbatch."""


@final
class Slots:
    """The numbering for a number of stages and microbatches.

    Args:
        num_stages: stages of the schedule.
        num_microbatches: microbatches of the schedule.
        carried: which boundaries transfers carry.

    Example:
        >>> slots = Slots(num_stages=2, num_microbatches=3)
        >>> [base + 1 for base in slots.left_by[ActionKind.F][0]]  # 0F1 leaves
        [1]
        >>> [base + 1 for base in slots.needed_by[ActionKind.F][1]]  # 1F1 needs the same
        [1]
    """

    def __init__(
        self, num_stages: int, num_microbatches: int, carried: Carried = never_carried
    ) -> None:
        self.num_stages = num_stages
        self.num_microbatches = num_microbatches
        self.count = len(_LEFT) * num_stages * num_microbatches
        stages = range(num_stages)
        self.left_by = {
            kind: [
                tuple(self._base(code, stage) for code, left in enumerate(_LEFT) if kind in left)
                for stage in stages
            ]
            for kind in KINDS
        }
        """Kind → stage → first slots of what it leaves; add the microbatch."""
        self.needed_by = {
            kind: [
                tuple(
                    self.base_of(need)
                    for need in needs_of(kind, stage, num_stages, carried)
                    if 0 <= need.stage < num_stages
                )
                for stage in stages
            ]
            for kind in KINDS
        }
        """Kind → stage → first slots of what it needs; add the microbatch."""

    def base_of(self, need: Need) -> int:
        """First slot of a need; add the microbatch."""
        code = next(code for code, left in enumerate(_LEFT) if set(need.kinds) <= set(left))
        return self._base(code, need.stage)

    def meaning(self, slot: int) -> tuple[Need, int]:
        """What a slot stands for, and for which microbatch."""
        base, microbatch = divmod(slot, self.num_microbatches)
        code, stage = divmod(base, self.num_stages)
        return Need(stage, _LEFT[code]), microbatch

    def _base(self, code: int, stage: int) -> int:
        return (code * self.num_stages + stage) * self.num_microbatches
