"""What a stage holds in memory: a microbatch between its actions, and its weights all the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from ppframe.runtime.chain import StageChain
from ppframe.stage import Stage, boundary
from ppframe.stage.boundary import Gradients
from ppframe.training.live_memory import LiveMemory
from ppframe.training.optim import NamedParameter, OptimizerFactory

Members = Sequence[tuple[int, nn.Module]]
"""Model chunks of a stage, each with its index in the unsplit model."""
_HOST = torch.device("cpu")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one microbatch holds on one stage.

    Args:
        activation_bytes: from F until the last part of the backward.
        weight_share: what is there between B and W, as a part of that; above 1 where the gradients
            that B leaves for W are more than what it frees.
        allocated_bytes: what CUDA's allocator says that F leaves; None on other devices.
        allocated_peak_bytes: the most that it had given out during F, likewise.
    """

    activation_bytes: int
    weight_share: float
    allocated_bytes: int | None
    allocated_peak_bytes: int | None


def measure_held(chain: StageChain) -> tuple[Held, ...]:
    """Take one microbatch through all stages, and count after each action what is still there.

    Stages are kept apart as if each had a device of its own: what arrives is a copy that is the
    stage's alone, and what it hands on leaves its device. So nothing is there that the stage itself
    doesn't keep.

    Args:
        chain: has a batch, and has run once, so that gradients are there to be added to.
    """
    memories = [LiveMemory(_lasting_tensors(chain, stage.index)) for stage in chain.stages]
    after_forward, after_input, after_weight = [], [], []
    allocations = []
    value: Any = chain.inputs(0)
    for stage, memory in zip(chain.stages, memories, strict=True):
        allocated = _Allocated(stage.device)
        value = _forward(stage, value, memory)
        allocations.append(allocated.change())
        after_forward.append(memory.live_bytes())
    gradients: Gradients = ()
    for stage, memory in zip(reversed(chain.stages), reversed(memories), strict=True):
        gradients = _backward_input(stage, gradients, memory)
        after_input.append(memory.live_bytes())
    for stage, memory in zip(reversed(chain.stages), reversed(memories), strict=True):
        stage.backward_weight(0)
        after_weight.append(memory.live_bytes())
    counts = zip(after_forward, after_input[::-1], after_weight[::-1], allocations, strict=True)
    return tuple(
        _held(forward - weight, arrived - weight, *allocation)
        for forward, arrived, weight, allocation in counts
    )


def weight_bytes(members: Members, make_optimizer: OptimizerFactory) -> int:
    """Bytes of a stage's parameters, buffers, gradients and state of the optimizer.

    The optimizer makes its state at its first step, so one is made on zeros of the same shapes.
    """
    named = _parameters(members)
    buffers = {id(b): b.nbytes for _, module in members for b in module.buffers()}
    trained = [(name, parameter) for name, parameter in named if parameter.requires_grad]
    held = sum(p.nbytes for _, p in named) + sum(p.nbytes for _, p in trained)
    return held + sum(buffers.values()) + _state_bytes(trained, make_optimizer)


def _held(activation: int, rest: int, allocated: int | None, peak: int | None) -> Held:
    return Held(
        activation_bytes=activation,
        weight_share=rest / activation if activation else 0.0,
        allocated_bytes=allocated,
        allocated_peak_bytes=peak,
    )


def _forward(stage: Stage, value: Any, memory: LiveMemory) -> Any:
    """F; gives a copy of the output on the host. Nothing else of it is left here."""
    arrived = _copied(value, stage.device) if stage.index else value
    memory.add(arrived)
    with memory.watching():
        output, _ = stage.forward(0, arrived, {})
    return _copied(output, _HOST)


def _backward_input(stage: Stage, gradients: Gradients, memory: LiveMemory) -> Gradients:
    """B; gives a copy of the gradients on the host."""
    arrived: Gradients = _copied(gradients, stage.device)
    memory.add(arrived)
    with memory.watching():
        made = stage.backward_input(0, arrived)
    copies: Gradients = _copied(made, _HOST)
    return copies


def _copied(value: Any, device: torch.device) -> Any:
    def copy(tensor: Tensor) -> Tensor:
        copied = tensor.detach().to(device, copy=True)
        return copied.requires_grad_(tensor.requires_grad)

    return boundary.map_tensors(copy, value)


def _lasting_tensors(chain: StageChain, stage: int) -> list[Tensor]:
    """What is in memory with or without a microbatch."""
    modules = [module for _, module in chain.members[stage]]
    parameters = [p for module in modules for p in module.parameters()]
    gradients = [p.grad for p in parameters if p.grad is not None]
    buffers = [b for module in modules for b in module.buffers()]
    return [*parameters, *gradients, *buffers, *chain.batch_tensors()]


def _parameters(members: Members) -> list[NamedParameter]:
    """The parameters of a stage, each once."""
    found = {
        id(parameter): (f"{index}.{name}", parameter)
        for index, module in members
        for name, parameter in module.named_parameters()
    }
    return list(found.values())


def _state_bytes(trained: Sequence[NamedParameter], make_optimizer: OptimizerFactory) -> int:
    if not trained:
        return 0
    zeros = [(name, nn.Parameter(torch.zeros_like(parameter))) for name, parameter in trained]
    for _, parameter in zeros:
        parameter.grad = torch.zeros_like(parameter)
    optimizer = make_optimizer(zeros)
    optimizer.step()
    return sum(t.nbytes for state in optimizer.state.values() for t in boundary.tensors_of(state))


@final
class _Allocated:
    """What a device's allocator gives out from now on; nothing is known of other devices."""

    def __init__(self, device: torch.device) -> None:
        self._device = device if device.type == "cuda" else None
        self._before = 0
        if self._device is not None:
            torch.cuda.reset_peak_memory_stats(self._device)
            self._before = torch.cuda.memory_allocated(self._device)

    def change(self) -> tuple[int | None, int | None]:
        """Bytes that were given out since and are still, and the most that there were."""
        if self._device is None:
            return None, None
        left = torch.cuda.memory_allocated(self._device) - self._before
        return left, torch.cuda.max_memory_allocated(self._device) - self._before
