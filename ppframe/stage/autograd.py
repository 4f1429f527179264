"""The one call into autograd's engine."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.autograd.graph import GradientEdge, _engine_run_backward

Root = Tensor | GradientEdge
"""Where a backward starts: a tensor, or a place in the graph."""


def run_engine(
    roots: Sequence[Root], seeds: Sequence[Tensor], targets: Sequence[GradientEdge] = ()
) -> None:
    """What `torch.autograd.backward` does, less its look at shapes and missing seeds.

    Seeds come from autograd itself or are made like their roots, so there is nothing to find; the
    look takes a sixth of the time of a small stage's backward.

    Args:
        roots: where to start; what is run through is freed.
        seeds: a gradient for each root.
        targets: run only what leads to one of these; empty runs everything.
    """
    _engine_run_backward(
        tuple(roots),
        tuple(seeds),
        False,
        False,
        tuple(targets),
        allow_unreachable=True,
        accumulate_grad=True,
    )
