"""Batches that are part of a graph: a step ends where the caller's own graph begins.

Microbatches are views of one batch. If the batch was computed from parameters, the backward of each
microbatch would run through that computation, which can be run through once only. So the step
works on leaves, and what these collect goes back through the caller's graph at the end, at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ppframe.stage import boundary


@contextmanager
def cut_off(*values: Any) -> Iterator[tuple[Any, ...]]:
    """The same structures with leaves in place of tensors that have a graph.

    At the end, if no error passes, their gradients are given to that graph.

    Args:
        values: nested structures of tensors.
    """
    pairs: list[tuple[Tensor, Tensor]] = []

    def cut(tensor: Tensor) -> Tensor:
        if tensor.grad_fn is None:
            return tensor
        leaf = tensor.detach().requires_grad_()
        pairs.append((tensor, leaf))
        return leaf

    yield tuple(boundary.map_tensors(cut, value) for value in values)
    reached = [(tensor, leaf.grad) for tensor, leaf in pairs if leaf.grad is not None]
    if reached:
        tensors, gradients = zip(*reached, strict=True)
        torch.autograd.backward(tensors, gradients)
