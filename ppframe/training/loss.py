"""Losses by name, each a mean that says what it divides by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppframe.errors import ConfigError
from ppframe.registry import register


@final
class SequenceCrossEntropy(nn.Module):
    """Mean cross-entropy, in nats, of logits whose **last** dimension is the class.

    `nn.CrossEntropyLoss` wants the classes in dimension 1 ([B, V, T]); language models give
    [B, T, V]. The mean runs over the targets that are not `ignore_index`, each weighted by its
    class; over no such target it is 0, not NaN, so that a batch of nothing but padding is harmless.

    Args:
        ignore_index: target value that stands for "no target here".
        label_smoothing: share of the probability that is spread over all classes, in [0, 1].
        class_weights: one weight a class; None for equal ones.

    Raises:
        ConfigError: an option is out of range.
    """

    class_weights: Tensor | None

    def __init__(
        self,
        *,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        class_weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        if not 0.0 <= label_smoothing <= 1.0:
            raise ConfigError(
                f"must lie in [0, 1], but is {label_smoothing}. 0 switches it off.",
                path="loss.label_smoothing",
            )
        if class_weights is not None and (not class_weights or min(class_weights) < 0.0):
            raise ConfigError(
                f"must hold one weight of at least 0 for each class, but is "
                f"{list(class_weights)}. Leave it null for equal weights.",
                path="loss.class_weights",
            )
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        weights = None if class_weights is None else torch.tensor(tuple(class_weights)).float()
        self.register_buffer("class_weights", weights)

    def denominator(self, target: Tensor) -> Tensor:
        """What the mean over `target` divides by: valid targets, or the sum of their weights.

        Args:
            target: int64, any shape.

        Returns:
            0-dim; int64, or float32 with class weights.
        """
        valid = target != self.ignore_index
        if self.class_weights is None:
            return valid.sum()
        return self.class_weights.to(target.device)[target[valid]].sum()

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Mean over valid targets.

        Args:
            logits: floating point [..., V]; half precision is summed in float32.
            target: int64 [...], in 0…V−1 or `ignore_index`.

        Returns:
            0-dim, nats per target.

        Raises:
            ConfigError: the shapes don't fit.
        """
        if logits.shape[:-1] != target.shape:
            raise ConfigError(
                f"`cross_entropy` must get logits of the targets' shape and one dimension more, "
                f"but gets {list(logits.shape)} (targets {list(target.shape)}). "
                f"Let the last model chunk put the classes last.",
                path="loss",
            )
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        weights = self.class_weights
        total = functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]),
            target.reshape(-1),
            weight=None if weights is None else weights.to(logits),
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction="sum",
        )
        count = self.denominator(target)
        return total / torch.where(count == 0, torch.ones_like(count), count)


@register("loss", "cross_entropy")
def cross_entropy(
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    class_weights: Sequence[float] | None = None,
) -> SequenceCrossEntropy:
    """Cross-entropy of logits [..., V] and class targets [...]: a mean over valid targets.

    Args:
        ignore_index: target value that stands for "no target here".
        label_smoothing: share of the probability that is spread over all classes, in [0, 1].
        class_weights: one weight a class; None for equal ones.

    Raises:
        ConfigError: an option is out of range.
    """
    return SequenceCrossEntropy(
        ignore_index=ignore_index, label_smoothing=label_smoothing, class_weights=class_weights
    )


@register("loss", "mse")
def mse() -> nn.MSELoss:
    """Mean squared error over all elements; output and target of one shape."""
    return nn.MSELoss()
