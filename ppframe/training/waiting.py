"""How much of each stage's backward can wait for W, told without running the model.

Modules run on tensors without memory. What such tensors take apart, a device may do in one kernel:
recurrent layers show products here that a CPU doesn't.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, final

import torch
from torch import Tensor, nn

from ppframe.schedule import ActionKind, Schedule
from ppframe.schedule.action import singles_of
from ppframe.stage.boundary import map_tensors, tensors_of
from ppframe.stage.split import num_waiting


@final
@dataclass(frozen=True, slots=True)
class Waiting:
    """What a stage leaves for W.

    Args:
        num_waiting: parameters whose gradients wait.
        num_trained: parameters that have gradients at all.
    """

    num_waiting: int
    num_trained: int

    def __str__(self) -> str:
        return f"{self.num_waiting} of {self.num_trained}"


def splits(schedule: Schedule) -> bool:
    """Whether a schedule has backwards in two parts."""
    return any(
        kind is ActionKind.W
        for row in schedule.actions
        for action in row
        for _, kind, _ in singles_of(action)
    )


def waiting_of(
    modules: Sequence[nn.Module], counts: Sequence[int], microbatch: Any
) -> tuple[Waiting, ...] | None:
    """What each stage leaves for W.

    Args:
        modules: model chunks in forward order, on the device `meta`.
        counts: how many of them each stage has.
        microbatch: inputs of a microbatch; only shapes and types are read.

    Returns:
        None where a module needs real numbers to run.
    """
    value = map_tensors(lambda tensor: tensor.to("meta"), microbatch)
    found: list[Waiting] = []
    remaining = iter(modules)
    try:
        with torch.enable_grad(), torch.device("meta"):
            for count in counts:
                waiting, value = _waiting_of(list(islice(remaining, count)), value)
                found.append(waiting)
    except Exception:  # modules may be the user's, and not every operation runs without memory
        return None
    return tuple(found)


def _waiting_of(stage: Sequence[nn.Module], value: Any) -> tuple[Waiting, Any]:
    """What a stage leaves for W, and what it hands on."""
    arrived = map_tensors(_leaf, value)
    leaves = [tensor for tensor in tensors_of(arrived) if tensor.requires_grad]
    value = map_tensors(torch.clone, arrived)  # some modules write to their input
    for module in stage:
        value = module(*value) if isinstance(value, tuple) else module(value)
    roots = [tensor for tensor in tensors_of(value) if tensor.requires_grad]
    trained = {p for module in stage for p in module.parameters() if p.requires_grad}
    return Waiting(num_waiting(roots, leaves), len(trained)), value


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_(tensor.requires_grad)
