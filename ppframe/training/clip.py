"""Gradient clipping by one norm over the parameters of all stages.

A norm for each stage would scale stages differently and so change the direction of the update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from ppframe.errors import ConfigError

Total = Callable[[Tensor], Tensor]
"""A sum over all processes of the sums that each has, 0-dim, in double precision."""


def as_it_is(own: Tensor) -> Tensor:
    """The total where there is one process."""
    return own


def global_norm(parameters: Iterable[nn.Parameter], total: Total = as_it_is) -> Tensor:
    """Euclidean norm of all gradients taken as one vector.

    The parameters' own norms are added up in float64 and rounded once, so that their order, and
    with it the layout of the pipeline, doesn't show in the result.

    Args:
        parameters: on any devices; one without a gradient adds nothing, one that comes twice
            counts once.
        total: adds up the squares of all processes.

    Returns:
        0-dim, at least float32, on the first gradient's device; not finite if a gradient isn't.
    """
    gradients = [p.grad for p in dict.fromkeys(parameters) if p.grad is not None]
    if not gradients:
        return total(torch.zeros((), dtype=torch.float64)).sqrt().float()
    device = gradients[0].device
    norms = [
        torch.linalg.vector_norm(
            gradient, dtype=torch.promote_types(gradient.dtype, torch.float32)
        ).to(device)
        for gradient in gradients
    ]
    together = torch.stack(norms)
    squares = together.double().square().sum()
    return total(squares).sqrt().to(together.dtype)


def clip_global_norm(
    parameters: Iterable[nn.Parameter], max_norm: float, total: Total = as_it_is
) -> Tensor:
    """Scale all gradients in place so that their global norm is at most `max_norm`.

    A norm that isn't finite is returned and the gradients stay as they are: whether to skip the
    step or to stop is the caller's choice, the same for all ranks. No device is waited for.

    Args:
        parameters: those of all stages, on any devices; see `global_norm`.
        max_norm: limit, above 0; infinity only measures.
        total: adds up the squares of all processes.

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
    norm = global_norm(owned, total)
    finite = torch.where(norm.isfinite(), norm, torch.zeros_like(norm))
    nn.utils.clip_grads_with_norm_(owned, max_norm, finite)
    return norm
