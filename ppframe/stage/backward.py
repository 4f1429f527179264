"""Backward of a stage for one microbatch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

from ppframe.stage.boundary import Gradients

Term = tuple[Tensor, Tensor | None]
"""A 0-dim part of the batch's loss and its weight, also 0-dim; None leaves it out."""


@final
class Saved:
    """What a microbatch's backward needs after its forward.

    Of an output only its edge of the graph is kept, not the tensor: where the next stage doesn't
    share its memory, the output is free as soon as it is sent.

    Args:
        leaves: for each tensor that arrived, the leaf that collects its gradient, or None.
        outputs: the tensors of the output boundary.
        terms: what this stage adds to the loss.
    """

    __slots__ = ("leaves", "outputs", "terms")

    def __init__(
        self,
        leaves: tuple[Tensor | None, ...],
        outputs: Sequence[Tensor],
        terms: Sequence[Term],
    ) -> None:
        self.leaves = leaves
        self.outputs: list[GradientEdge | None] = [
            get_gradient_edge(output) if output.requires_grad else None for output in outputs
        ]
        self.terms = terms


def full_backward(saved: Saved, gradients: Gradients) -> Gradients:
    """Gradients for what arrived, and for the parameters, in one pass.

    Args:
        saved: what the forward kept; its graph is freed.
        gradients: for each tensor of the output boundary; None where nobody used it.

    Returns:
        for each tensor that arrived its gradient, or None.
    """
    roots: list[GradientEdge | Tensor] = []
    seeds: list[Tensor] = []
    for output, gradient in zip(saved.outputs, gradients, strict=True):
        if output is not None and gradient is not None:
            roots.append(output)
            seeds.append(gradient)
    for term, weight in saved.terms:
        if weight is not None and term.requires_grad:
            roots.append(term)
            seeds.append(weight)
    if roots:
        torch.autograd.backward(roots, seeds)  # type: ignore[arg-type]  # it takes both mixed
    return tuple([None if leaf is None else leaf.grad for leaf in saved.leaves])
