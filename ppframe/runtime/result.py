"""What a step gives, and what a pipeline says of its stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from ppframe.schedule import Action


@final
@dataclass(frozen=True, slots=True)
class ActionTime:
    """When one action ran.

    Args:
        rank: pipeline rank.
        action: the action of the lowered schedule.
        start_s: start, in seconds since the step began.
        end_s: end, likewise.
    """

    rank: int
    action: Action
    start_s: float
    end_s: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """What `Pipeline.step` and `Pipeline.evaluate` give.

    Args:
        loss: 0-dim, detached: the loss of the whole batch, as the unsplit model has it.
        microbatch_losses: [M], detached: the loss of each microbatch alone, by its index.
        auxiliary_loss: 0-dim, detached: weighted total of what modules added.
        timeline: when each action ran, in the order of starts; None unless asked for.
    """

    loss: Tensor
    microbatch_losses: Tensor
    auxiliary_loss: Tensor
    timeline: tuple[ActionTime, ...] | None = None


@final
@dataclass(frozen=True, slots=True)
class StageInfo:
    """One stage of a pipeline.

    Args:
        index: stage index.
        rank: pipeline rank that owns it.
        module_names: names of its modules in the unsplit model.
        num_parameters: elements of all its parameters, shared ones counted.
        parameter_bytes: their size.
        copy_rank: rank that holds a copy of them for the second chain of a schedule; None where
            there is no second chain, or it runs the same modules on the same device.
    """

    index: int
    rank: int
    module_names: tuple[str, ...]
    num_parameters: int
    parameter_bytes: int
    copy_rank: int | None = None
