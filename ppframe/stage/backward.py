"""Backward of a stage for one microbatch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from torch import Tensor

from ppframe.stage.autograd import run_engine
from ppframe.stage.boundary import Gradients
from ppframe.stage.split import WeightWork, backward_input

Term = tuple[Tensor, Tensor | None]
"""A 0-dim part of the batch's loss and its weight, also 0-dim; None leaves it out."""


@final
class Saved:
    """What a microbatch's backward needs after its forward.

    The outputs share their memory with the leaves of the next stage, where both are in one process,
    so keeping them here costs nothing.

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
        self.outputs = outputs
        self.terms = terms


def full_backward(saved: Saved, gradients: Gradients) -> Gradients:
    """BW: gradients for what arrived, and for the parameters, in one pass.

    Args:
        saved: what the forward kept; its graph is freed.
        gradients: for each tensor of the output boundary; None where nobody used it.

    Returns:
        for each tensor that arrived its gradient, or None.
    """
    roots, seeds = _starts(saved, gradients)
    if roots:
        run_engine(roots, seeds)
    return _arrived(saved)


def input_backward(saved: Saved, gradients: Gradients) -> tuple[Gradients, WeightWork]:
    """B: as `full_backward`, less the gradients of weights that can wait, which W computes."""
    roots, seeds = _starts(saved, gradients)
    work = backward_input(roots, seeds, saved.leaves) if roots else []
    return _arrived(saved), work


def _starts(saved: Saved, gradients: Gradients) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors from which a backward starts, and the gradients it starts with."""
    roots: list[Tensor] = []
    seeds: list[Tensor] = []
    for output, gradient in zip(saved.outputs, gradients, strict=True):
        if gradient is not None and output.requires_grad:
            roots.append(output)
            seeds.append(gradient)
    for term, weight in saved.terms:
        if weight is not None and term.requires_grad:
            roots.append(term)
            seeds.append(weight)
    return roots, seeds


def _arrived(saved: Saved) -> Gradients:
    return tuple([None if leaf is None else leaf.grad for leaf in saved.leaves])
