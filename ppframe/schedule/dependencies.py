"""The rule of the whole project: what must have happened before an action.

Verifying, lowering, simulating and drawing all ask here, and nobody restates it. The rule is the
same for every microbatch, so whoever has a million actions asks once for each kind and stage
(`needs_of`) and shifts the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

from ppframe.errors import ScheduleError
from ppframe.schedule.action import Action, ActionKind, Reduce, singles_of

_F, _B, _W, _BW = ActionKind.F, ActionKind.B, ActionKind.W, ActionKind.BW

ACTIVATION: Final = (_F,)
"""What leaves a stage's output: its forward."""
INPUT_GRADIENT: Final = (_B, _BW)
"""What leaves the gradient for a stage's input: either kind of backward."""
WEIGHT_GRADIENT: Final = (_W, _BW)
"""What leaves the gradient for a stage's weights, the last backward part of a microbatch."""

Carried = Callable[[int], bool]
"""Stage s → whether the boundary between s and s + 1 is carried by transfers."""


@final
class Need(NamedTuple):
    """One thing that must have happened: one of several kinds on a stage.

    Args:
        stage: stage on which it happens.
        kinds: the kinds of which one must have run.
    """

    stage: int
    kinds: tuple[ActionKind, ...]

    def actions(self, microbatch: int) -> tuple[Action, ...]:
        """The actions of which one must have run for this microbatch."""
        return tuple(Action(self.stage, kind, microbatch) for kind in self.kinds)


def never_carried(stage: int) -> bool:  # noqa: ARG001 (an answer for every boundary)
    """The boundaries of a compute-only schedule: stages hand over directly."""
    return False


def needs_of(
    kind: ActionKind, stage: int, num_stages: int, carried: Carried = never_carried
) -> tuple[Need, ...]:
    """What a single action of this kind needs of its own microbatch.

    ::

        F s      the input: F s-1, or where transfers carry it RECV_F s
        B, BW s  F s, and the output's gradient: B or BW s+1, or RECV_B s
        W s      B s
        SEND s   what it sends: F s, or B or BW s
        RECV s   its other end: SEND_F s-1, or SEND_B s+1

    Args:
        kind: a kind of one stage and one microbatch.
        stage: stage that runs it.
        num_stages: stages of the schedule.
        carried: which boundaries transfers carry; none in a compute-only schedule.
    """
    match kind:
        case ActionKind.F:
            return _input_of(stage, carried)
        case ActionKind.B | ActionKind.BW:
            return (Need(stage, ACTIVATION), *_output_gradient_of(stage, num_stages, carried))
        case ActionKind.W:
            return (Need(stage, (_B,)),)
        case ActionKind.SEND_F:
            return (Need(stage, ACTIVATION),)
        case ActionKind.SEND_B:
            return (Need(stage, INPUT_GRADIENT),)
        case ActionKind.RECV_F:
            return (Need(stage - 1, (ActionKind.SEND_F,)),)
        case ActionKind.RECV_B:
            return (Need(stage + 1, (ActionKind.SEND_B,)),)
    raise ScheduleError(f"a kind must be of one stage and one microbatch, but is {kind.value}.")


def dependencies(
    action: Action,
    num_stages: int,
    *,
    carried: Carried = never_carried,
    num_microbatches: int = 0,
) -> tuple[tuple[Action, ...], ...]:
    """What must have happened before an action; of each entry, one action must have run.

    Args:
        action: any action; a pair needs what its two parts need.
        num_stages: stages of the schedule.
        carried: stage s → whether transfers carry the boundary between s and s + 1; none do in a
            compute-only schedule.
        num_microbatches: microbatches of the schedule; only a reduction asks, for it needs all.

    Example:
        >>> dependencies(Action.parse("1BW0"), num_stages=4)
        ((1F0,), (2B0, 2BW0))
        >>> dependencies(Action.parse("1F0"), num_stages=4, carried=lambda stage: True)
        ((1RECV_F0,),)
    """
    if isinstance(action, Reduce):
        need = Need(action.stage, WEIGHT_GRADIENT)
        return tuple(need.actions(microbatch) for microbatch in range(num_microbatches))
    return tuple(
        need.actions(microbatch)
        for stage, kind, microbatch in singles_of(action)
        for need in needs_of(kind, stage, num_stages, carried)
    )


def _input_of(stage: int, carried: Carried) -> tuple[Need, ...]:
    if stage == 0:
        return ()
    if carried(stage - 1):
        return (Need(stage, (ActionKind.RECV_F,)),)
    return (Need(stage - 1, ACTIVATION),)


def _output_gradient_of(stage: int, num_stages: int, carried: Carried) -> tuple[Need, ...]:
    if stage == num_stages - 1:
        return ()
    if carried(stage):
        return (Need(stage, (ActionKind.RECV_B,)),)
    return (Need(stage + 1, INPUT_GRADIENT),)
