"""How much a step moves between ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, final

import torch
from torch import Tensor, nn

from ppframe.schedule import ActionKind, LoweredSchedule, Transfer
from ppframe.schedule.action import parts
from ppframe.stage.boundary import map_tensors, tensors_of


@final
@dataclass(frozen=True, slots=True)
class Volume:
    """Messages of a step between ranks.

    Args:
        messages: how many there are.
        num_bytes: their size in all; None where it can't be told without running the model.
    """

    messages: int
    num_bytes: int | None


def volume_of(
    lowered: LoweredSchedule, modules: Sequence[nn.Module], counts: Sequence[int], microbatch: Any
) -> Volume:
    """The messages of a step.

    Args:
        lowered: what is executed.
        modules: model chunks in forward order, on the device `meta`.
        counts: how many of them each stage has.
        microbatch: inputs of a microbatch; only shapes and types are read.
    """
    sends = Counter(
        (part.kind, part.stage)
        for action in chain(*lowered.actions)
        for part in parts(action)
        if isinstance(part, Transfer) and part.is_send
    )
    boundaries = _boundaries(modules, counts, microbatch)
    if boundaries is None:
        return Volume(sends.total(), None)
    forth = [sum(map(_bytes, tensors)) for tensors in boundaries]
    back = [sum(_bytes(t) for t in tensors if t.is_floating_point()) for tensors in boundaries]
    sizes = (
        count * (forth[stage] if kind is ActionKind.SEND_F else back[stage - 1])
        for (kind, stage), count in sends.items()
    )
    return Volume(sends.total(), sum(sizes))


def _boundaries(
    modules: Sequence[nn.Module], counts: Sequence[int], value: Any
) -> list[tuple[Tensor, ...]] | None:
    """What each stage returns, tried on tensors without memory; None where it needs numbers."""
    value = map_tensors(lambda tensor: tensor.to("meta"), value)
    handed_on = [tensors_of(value)]  # by a stage without modules, what came
    try:
        with torch.no_grad(), torch.device("meta"):
            for module in modules:
                value = module(*value) if isinstance(value, tuple) else module(value)
                handed_on.append(tensors_of(value))
    except Exception:  # modules may be the user's, and not every operation runs without memory
        return None
    return [handed_on[last] for last in accumulate(counts)]


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
