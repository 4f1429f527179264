"""Replicas: second copies of modules on other devices, for the second chain of a schedule.

A rank holds its stage of either chain, so each stage lies on two ranks. Where both have one device
they run the very same modules, and there is nothing to copy or to add. Otherwise the user's modules
stay the masters, which the optimizer updates; before a step the replicas take over their values,
after it the masters take over the replicas' gradients.

::

    rank 0, cuda:0   stage 0 of chain 0, master     ◀── gradients ──┐
    rank 1, cuda:1   stage 0 of chain 1, replica ───────────────────┘   values go the other way
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from ppframe.errors import ConfigError


@final
class Replicas:
    """The replicas of a pipeline; what modules share, their replicas on one device share."""

    def __init__(self) -> None:
        self._pairs: list[tuple[str, nn.Module, nn.Module]] = []
        self._copied: dict[torch.device, dict[int, Any]] = {}
        self._buffers: list[tuple[Tensor, int]] = []

    def add(self, name: str, master: nn.Module, device: torch.device) -> nn.Module:
        """A copy of a module on a device.

        Args:
            name: what messages call it.
            master: the user's module.
            device: another one than the master's.

        Returns:
            the replica; it runs with what the master had at the last `refresh`.
        """
        replica = copy.deepcopy(master, self._copied.setdefault(device, {})).to(device)
        self._pairs.append((name, master, replica))
        return replica

    def refresh(self) -> None:
        """Give the replicas the values and flags of their masters, before a step.

        Raises:
            ConfigError: a module is about to keep running statistics.
        """
        for name, master, replica in self._pairs:
            _refuse_statistics(name, master)
            for module, twin in zip(master.modules(), replica.modules(), strict=True):
                twin.training = module.training
        with torch.no_grad():
            for _, master, replica in self._pairs:
                for own, value in zip(replica.parameters(), master.parameters(), strict=True):
                    own.requires_grad_(value.requires_grad)
                    own.grad = None
                    own.copy_(value)
                for buffer, source in zip(replica.buffers(), master.buffers(), strict=True):
                    buffer.copy_(source)
        self._buffers = [(buffer, buffer._version) for _, buffer in self._named_buffers()]

    def gather(self) -> None:
        """Add the replicas' gradients to their masters', after a step.

        Raises:
            ConfigError: a forward wrote to a buffer.
        """
        now = self._named_buffers()
        for (name, buffer), (before, version) in zip(now, self._buffers, strict=True):
            if buffer is not before or buffer._version != version:
                raise _written(name)
        with torch.no_grad():
            for _, master, replica in self._pairs:
                for own, value in zip(replica.parameters(), master.parameters(), strict=True):
                    _move_gradient(own, value)

    def release(self) -> None:
        """Drop the replicas' gradients, after a failure."""
        for _, _, replica in self._pairs:
            for own in replica.parameters():
                own.grad = None

    def _named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        for name, _, replica in self._pairs:
            for own_name, buffer in replica.named_buffers():
                yield f"{name}.{own_name}", buffer


def _refuse_statistics(name: str, master: nn.Module) -> None:
    """Refuse a module that will keep running statistics, before it does."""
    for own_name, module in master.named_modules(prefix=name):
        if isinstance(module, _NormBase) and module.training and module.running_mean is not None:
            raise _written(f"{own_name}.running_mean")


def _written(name: str) -> ConfigError:
    """A buffer that forwards write to: two copies of it can't end as that of one model."""
    return ConfigError(
        f"must keep their buffers in a step where the schedule has two chains and the copies of a "
        f"stage lie on two devices, but `{name}` is written to. Put ranks r and P - 1 - r on one "
        "device, set the module to eval mode, or use a schedule with one chain.",
        path="stages",
    )


def _move_gradient(source: nn.Parameter, target: nn.Parameter) -> None:
    """Add a gradient to another parameter's; a shared one has none when it is met again."""
    if source.grad is None:
        return
    moved = source.grad.to(target.device)
    target.grad = moved if target.grad is None else target.grad.add_(moved)
    source.grad = None
