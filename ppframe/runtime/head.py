"""The end of the pipeline: losses of the microbatches, kept by index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, final

import torch
from torch import Tensor

from ppframe.stage.backward import Term
from ppframe.stage.batch_loss import BatchLoss, LossWeights
from ppframe.stage.stage import Head
from ppframe.transport import Peers

_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@final
class LossHead:
    """Computes the loss of each microbatch and puts the loss of the batch together.

    Args:
        loss: the loss function with its weighting rule.
    """

    def __init__(self, loss: BatchLoss) -> None:
        self.loss = loss
        self._targets: Sequence[Any] = ()
        self._weights: LossWeights | None = None
        self._values: dict[int, Tensor] = {}
        self._seeds: dict[tuple[float, torch.dtype, torch.device], Tensor] = {}

    def begin_step(self, targets: Sequence[Any], weights: LossWeights) -> None:
        """Take the targets of the step's microbatches and their weights."""
        self._targets = targets
        self._weights = weights
        self._values.clear()

    def __call__(self, microbatch: int, output: Any) -> Term:
        """Loss of a microbatch, and the weight that its backward starts from."""
        return self._take(self.loss, microbatch, output)

    def with_copy(self, loss: BatchLoss) -> Head:
        """The same end for a last stage on another device, where the loss has a copy."""
        return partial(self._take, loss)

    def _take(self, loss: BatchLoss, microbatch: int, output: Any) -> Term:
        assert self._weights is not None
        value = loss(output, self._targets[microbatch])
        self._values[microbatch] = value.detach()
        weight = self._weights.gradient[microbatch]
        return value, None if weight is None else self._seed(weight, value)

    def complete(self, num_microbatches: int, auxiliary: Tensor, peers: Peers) -> Tensor:
        """Learn of other processes what the microbatches that ended there gave.

        Args:
            num_microbatches: microbatches of the step.
            auxiliary: total of the auxiliary losses here, 0-dim.
            peers: the processes; one small sum goes around.

        Returns:
            the total of all processes.
        """
        known = torch.zeros(num_microbatches + 2, dtype=torch.float64)
        for index, value in self._values.items():
            known[index] = value
        known[-2] = auxiliary
        known[-1] = _DTYPES.index(self._values[0].dtype) if 0 in self._values else 0
        *losses, total, dtype = peers.sum(known).unbind()
        self._values = {
            index: value.to(auxiliary.device, _DTYPES[int(dtype)])
            for index, value in enumerate(losses)
        }
        return total.to(auxiliary.device)

    def result(self) -> tuple[Tensor, Tensor]:
        """Loss of the batch, and of each microbatch alone, shape [M].

        The sum runs by index in double precision, so it doesn't depend on the order of arrival.
        """
        assert self._weights is not None
        device = self._values[0].device
        in_order = [self._values[index].to(device) for index in range(len(self._values))]
        values = torch.stack(in_order)
        weights = [0.0 if weight is None else weight for weight in self._weights.gradient]
        counted = values.double()
        if None in self._weights.gradient:
            left_out = [weight is None for weight in self._weights.gradient]
            counted = counted.masked_fill(torch.tensor(left_out, device=values.device), 0.0)
        loss = (counted * counted.new_tensor(weights)).sum().to(values.dtype)
        alone = (values.double() * counted.new_tensor(self._weights.report)).to(values.dtype)
        return loss, alone

    def release(self) -> None:
        """Drop the step's targets and losses."""
        self._targets = ()
        self._values.clear()

    def _seed(self, weight: float, value: Tensor) -> Tensor:
        """A 0-dim tensor of this weight, made once for all microbatches that share it."""
        key = (weight, value.dtype, value.device)
        if key not in self._seeds:
            self._seeds.clear()
            self._seeds[key] = torch.full_like(value.detach(), weight)
        return self._seeds[key]
