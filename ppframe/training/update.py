"""The update: one optimizer for each rank, one learning rate and one gradient norm for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import nn
from torch.optim import Optimizer

from ppframe.training.clip import Total, as_it_is, clip_global_norm, global_norm
from ppframe.training.lr_schedule import LRSchedule
from ppframe.training.optim import OptimizerFactory


@final
class Update:
    """Owns the optimizers of all ranks and moves them in step.

    Args:
        parameters_by_rank: names and parameters of each rank, each parameter once. Frozen ones are
            left out; a rank with nothing to train has no optimizer.
        make_optimizer: called once for each rank.
        lr_schedule: (step from 0, total steps) to the multiplier of each group's own rate.
        clip_grad_norm: limit of the norm of all gradients together; None only measures it.
        total: adds up what each process has of that norm.
    """

    def __init__(
        self,
        parameters_by_rank: Sequence[Sequence[tuple[str, nn.Parameter]]],
        *,
        make_optimizer: OptimizerFactory,
        lr_schedule: LRSchedule,
        clip_grad_norm: float | None = None,
        total: Total = as_it_is,
    ) -> None:
        trained = [
            [(name, parameter) for name, parameter in owned if parameter.requires_grad]
            for owned in parameters_by_rank
        ]
        self.optimizers: tuple[Optimizer, ...] = tuple(
            make_optimizer(owned) for owned in trained if owned
        )
        self._parameters = [parameter for owned in trained for _, parameter in owned]
        self._lr_schedule = lr_schedule
        self._max_norm = clip_grad_norm
        self._total = total
        self._groups = [
            (group, float(group["lr"]))
            for optimizer in self.optimizers
            for group in optimizer.param_groups
        ]
        self._first_lr = self._groups[0][1] if self._groups else _lr_of(make_optimizer)

    def apply(self, step: int, num_steps: int) -> tuple[float, float]:
        """Clip, update every parameter, and drop the gradients.

        Args:
            step: updates done before this one.
            num_steps: updates of the whole run.

        Returns:
            learning rate of the first group, and the gradients' norm before clipping.
        """
        multiplier = self._lr_schedule(step, num_steps)
        for group, base_lr in self._groups:
            group["lr"] = base_lr * multiplier
        if self._max_norm is None:
            norm = global_norm(self._parameters, self._total)
        else:
            norm = clip_global_norm(self._parameters, self._max_norm, self._total)
        for optimizer in self.optimizers:
            optimizer.step()
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        return self._first_lr * multiplier, float(norm)


def _lr_of(make_optimizer: OptimizerFactory) -> float:
    """The base learning rate, where nothing here is trained: other processes may have more."""
    stand_in = make_optimizer([("stand_in", nn.Parameter(torch.zeros(1, 1)))])
    return float(stand_in.param_groups[0]["lr"])
