"""Gradient clipping by one norm over the parameters of all stages.

A norm for each stage would scale stages differently and so change the direction of the update.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ppframe.errors import ConfigError


def global_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """Euclidean norm of all gradients taken as one vector.

    The parameters' own norms are added up in float64 and rounded once, so that their order, and
    with it the layout of the pipeline, doesn't show in the result.

    Args:
        parameters: on any devices; one without a gradient adds nothing, one that comes twice
            counts once.

    Returns:
        0-dim, at least float32, on the first gradient's device; not finite if a gradient isn't.
    """
    gradients = [p.grad for p in dict.fromkeys(parameters) if p.grad is not None]
    if not gradients:
        return torch.zeros(())
    device = gradients[0].device
    norms = [
        torch.linalg.vector_norm(
            gradient, dtype=torch.promote_types(gradient.dtype, torch.float32)
        ).to(device)
        for gradient in gradients
    ]
    together = torch.stack(norms)
    total: Tensor = torch.linalg.vector_norm(together, dtype=torch.float64).to(together.dtype)
    return total


def clip_global_norm(parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Scale all gradients in place so that their global norm is at most `max_norm`.

    A norm that isn't finite is returned and the gradients stay as they are: whether to skip the
    step or to stop is the caller's choice, the same for all ranks. No device is waited for.

    Args:
        parameters: those of all stages, on any devices; see `global_norm`.
        max_norm: limit, above 0; infinity only measures.

    Returns:
        the norm before clipping, 0-dim.

    Raises:
        ConfigError: `max_norm` is not above 0.
    """
    if not max_norm > 0.0:
        raise ConfigError(
            f"must be above 0, but is {max_norm}. Null switches clipping off.",
            path="clip_grad_norm",
        )
    owned = list(dict.fromkeys(parameters))
    norm = global_norm(owned)
    finite = torch.where(norm.isfinite(), norm, torch.zeros_like(norm))
    nn.utils.clip_grads_with_norm_(owned, max_norm, finite)
    return norm
