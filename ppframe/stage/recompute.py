"""Recomputing: a forward that keeps nothing, run again when its backward comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from ppframe.errors import InternalError
from ppframe.stage import boundary


def keeping_nothing() -> torch.autograd.graph.saved_tensors_hooks:
    """Context in which autograd records which outputs need gradients, but saves no tensor."""
    return torch.autograd.graph.saved_tensors_hooks(_drop, _refuse)


def without_graph(value: Any) -> Any:
    """The same tensors, cut from how they were made; they ask for gradients as before."""
    return boundary.map_tensors(_cut, value)


@contextmanager
def scratch_buffers(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Let modules write to copies of their buffers.

    The first forward has counted the microbatch in running statistics; the second must not.
    """
    places = {
        (id(module), name): (module, name, buffer)
        for stem in modules
        for module in stem.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    }
    copies: dict[int, Tensor] = {}
    for module, name, buffer in places.values():
        module._buffers[name] = copies.setdefault(id(buffer), buffer.clone())
    try:
        yield
    finally:
        for module, name, buffer in places.values():
            module._buffers[name] = buffer


def _cut(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _drop(tensor: Tensor) -> None:  # noqa: ARG001 (what autograd would keep)
    return None


def _refuse(_: None) -> NoReturn:
    raise InternalError(
        "the backward of a recomputed stage must run on its second forward, but came to the first."
    )
