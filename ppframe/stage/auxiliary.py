"""Auxiliary losses: what a module inside the model adds to the loss of the batch.

A mixture-of-experts layer wants its load balanced; the value exists in the middle of the model, far
from the loss. The module says `add_auxiliary_loss(value)` in its forward; the stage that runs it
collects the value and adds it to its own backward, so nothing has to travel to the last stage.
"""

from __future__ import annotations

from contextvars import ContextVar

from torch import Tensor

_collected: ContextVar[list[Tensor] | None] = ContextVar("ppframe_auxiliary", default=None)


def add_auxiliary_loss(value: Tensor) -> None:
    """Add a value to the loss of the microbatch that is running.

    Call it inside a module's `forward`. The values are weighted as the loss is: for a `sum` loss
    they are added up, otherwise each counts as a mean over the samples of its microbatch. The
    total is `StepResult.auxiliary_loss`; `StepResult.loss` doesn't hold it. Outside a pipeline,
    where nobody collects, the call does nothing.

    Args:
        value: 0-dim floating tensor, with its graph.
    """
    collected = _collected.get()
    if collected is not None:
        if value.dim() != 0:
            raise ValueError(
                f"an auxiliary loss must be a 0-dim tensor, but has shape {list(value.shape)}. "
                "Reduce it with .mean() or .sum()."
            )
        collected.append(value)


def begin_collecting() -> list[Tensor]:
    """Start a list that `add_auxiliary_loss` appends to in this thread, and give it."""
    collected: list[Tensor] = []
    _collected.set(collected)
    return collected


def stop_collecting() -> None:
    """Let `add_auxiliary_loss` do nothing again."""
    _collected.set(None)
