"""The loss over many batches, exactly that of all their samples in one batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ppframe.errors import ConfigError
from ppframe.stage import BatchLoss
from ppframe.stage.batch_loss import LossFunction
from ppframe.stage.microbatch import batch_size_of

if TYPE_CHECKING:
    from ppframe.runtime import Pipeline


def evaluate(
    pipeline: Pipeline, batches: Iterable[tuple[Any, Any]], *, loss: LossFunction
) -> float:
    """Loss over the union of batches, without gradients and in eval mode.

    The rule that weights the microbatches of a batch also weights the batches of the union: by
    valid targets where the loss counts those, by samples otherwise, and by nothing for a sum.

    Args:
        pipeline: its training state is left alone.
        batches: (inputs, targets) pairs of any sizes; all targets are held until the end.
        loss: the pipeline's own loss.

    Raises:
        ConfigError: there is no batch.
    """
    losses, targets, sizes = [], [], []
    for inputs, target in batches:
        losses.append(float(pipeline.evaluate(inputs, target).loss))
        targets.append(target)
        sizes.append(batch_size_of(inputs))
    if not losses:
        raise ConfigError(
            "must be at least 1, but is 0. Without batches there is nothing to evaluate.",
            path="evaluation.num_batches",
        )
    weights = BatchLoss(loss).weights(targets, sizes)
    shares = (
        0.0 if gradient is None else gradient / report
        for gradient, report in zip(weights.gradient, weights.report, strict=True)
    )
    return sum(share * value for share, value in zip(shares, losses, strict=True) if share)
