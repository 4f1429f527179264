"""The loss of a batch out of the losses of its microbatches, exactly.

The mean over a batch is not the mean of its microbatches' means when those hold different numbers
of samples, or of valid targets. So each microbatch's loss gets a weight, known before the step from
the targets alone, such that the weighted sum is the loss of the whole batch:

    loss of torch with reduction="mean" over valid targets    sum of terms / all valid targets
    any other mean over samples                               mean · samples / all samples
    a loss with `denominator(target)`                         mean · own / all denominators
    reduction="sum"                                           sum · 1
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.loss import _Loss

from ppframe.errors import ConfigError

LossFunction = Callable[[Any, Any], Tensor]


@final
@dataclass(frozen=True, slots=True)
class LossWeights:
    """How the microbatches' losses of one step make the loss of the batch.

    Args:
        gradient: for each microbatch, what its loss value is multiplied by; None leaves the
            microbatch out, as it holds no valid target.
        report: for each microbatch, what its loss value is multiplied by to give the loss of the
            microbatch alone.
        auxiliary: for each microbatch, what its auxiliary losses are multiplied by.
    """

    gradient: tuple[float | None, ...]
    report: tuple[float, ...]
    auxiliary: tuple[float, ...]


@final
class BatchLoss:
    """A loss function together with the rule that weights microbatches.

    Args:
        function: a torch loss (module, function or `functools.partial` of one), or any callable
            (output, target) → 0-dim tensor that is a mean over samples; one with a method
            `denominator(target)` says itself what its mean divides by.

    Raises:
        ConfigError: the loss has reduction "none".
    """

    def __init__(self, function: LossFunction) -> None:
        function = _as_module(function)
        reduction = _reduction(function)
        if reduction not in ("mean", "sum", "batchmean"):
            raise ConfigError(
                f"must reduce to one number by `mean` or `sum`, but has reduction `{reduction}`.",
                path="loss",
            )
        self._is_sum = reduction == "sum"
        self._valid_targets = not self._is_sum and _counts_valid_targets(function)
        self._own = getattr(function, "denominator", None) if not self._is_sum else None
        self.function = function
        self._sum = _with_reduction(function, "sum") if self._valid_targets else function

    def __call__(self, output: Any, target: Any) -> Tensor:
        """Loss value of a microbatch, 0-dim, to be multiplied by its weight."""
        function = self._sum if self._divides_targets(target) else self.function
        value = function(output, target)
        if not isinstance(value, Tensor) or value.dim() != 0:
            shape = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ConfigError(
                f"must give a 0-dim tensor, but gave {shape}. Reduce it to one number.",
                path="loss",
            )
        return value

    def weights(self, targets: Sequence[Any], sizes: Sequence[int]) -> LossWeights:
        """Weights for the microbatches of one step.

        Args:
            targets: target of each microbatch.
            sizes: samples of each microbatch.
        """
        num_samples = sum(sizes)
        ones = (1.0,) * len(sizes)
        by_samples = tuple(size / num_samples for size in sizes)
        if self._is_sum:
            return LossWeights(gradient=ones, report=ones, auxiliary=ones)
        if self._valid_targets and self._divides_targets(targets[0]):
            counts = self._valid_denominators(targets)
            whole = (_reciprocal(sum(counts)),) * len(sizes)
            return LossWeights(whole, tuple(map(_reciprocal, counts)), by_samples)
        if self._own is not None:
            counts = _as_floats([self._own(target) for target in targets])
            total = sum(counts)
            gradient = tuple(count / total if count else None for count in counts)
            return LossWeights(gradient, ones, by_samples)
        return LossWeights(gradient=by_samples, report=ones, auxiliary=by_samples)

    def _divides_targets(self, target: Any) -> bool:
        """Whether the mean runs over valid targets: class indices, not class probabilities."""
        return self._valid_targets and isinstance(target, Tensor) and not target.is_floating_point()

    def _valid_denominators(self, targets: Sequence[Tensor]) -> list[float]:
        ignored = int(self.function.ignore_index)  # type: ignore[attr-defined]
        weight: Tensor | None = self.function.weight  # type: ignore[attr-defined]
        counts = []
        for target in targets:
            valid = target != ignored
            if weight is None:
                counts.append(valid.sum())
            else:
                counts.append(weight.to(target.device, torch.float64)[target[valid]].sum())
        return _as_floats(counts)


def _as_module(function: LossFunction) -> LossFunction:
    """`nn.functional`'s losses over classes as the modules that know their own options."""
    called, options = function, {}
    if isinstance(function, functools.partial) and not function.args:
        called, options = function.func, function.keywords
    if called is functional.cross_entropy:
        return nn.CrossEntropyLoss(**options)
    if called is functional.nll_loss:
        return nn.NLLLoss(**options)
    return function


def _reduction(function: LossFunction) -> str:
    if isinstance(function, _Loss):
        return function.reduction
    if isinstance(function, functools.partial) and (
        getattr(function.func, "__module__", "") == functional.__name__
    ):
        return str(function.keywords.get("reduction", "mean"))
    return "mean"


def _counts_valid_targets(function: LossFunction) -> bool:
    """Whether this is torch's own loss over classes, whose mean divides by valid targets."""
    forward = getattr(type(function), "forward", None)
    return forward in (nn.CrossEntropyLoss.forward, nn.NLLLoss.forward)


def _with_reduction(function: LossFunction, reduction: str) -> LossFunction:
    changed = copy.copy(function)
    changed.reduction = reduction  # type: ignore[attr-defined]
    return changed


def _as_floats(counts: Sequence[Tensor | float]) -> list[float]:
    """Numbers of all microbatches in one transfer from the device."""
    if all(isinstance(count, Tensor) for count in counts):
        stacked = torch.stack([torch.as_tensor(count) for count in counts])
        return [float(count) for count in stacked.tolist()]
    return [float(count) for count in counts]


def _reciprocal(number: float) -> float:
    """1 / number, infinite for 0 as a mean over nothing: torch gives NaN for it, and so do we."""
    return 1.0 / number if number else float("inf")
