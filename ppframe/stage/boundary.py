"""Boundaries: the nested structure of tensors that travels between two stages.

A boundary is whatever a stage returns: a tensor, or tuples, lists, dicts and dataclasses of tensors
and other values. Gradients travel back as a flat tuple with one entry for each tensor of the
boundary, in the order in which `tensors_of` lists them; the entry is None where there is no
gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

Gradients = tuple[Tensor | None, ...]
"""Gradients of a boundary's tensors, in order; None where no gradient flows."""


def tensors_of(value: Any) -> tuple[Tensor, ...]:
    """The tensors of a boundary, depth first; a dict's in the order of its keys."""
    if isinstance(value, Tensor):
        return (value,)
    return tuple(leaf for leaf in leaves_of(value)[0] if isinstance(leaf, Tensor))


def map_tensors(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The same structure with every tensor changed; other values stay as they are."""
    if isinstance(value, Tensor):
        return change(value)
    leaves, structure = leaves_of(value)
    changed = [change(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return assemble(changed, structure)


def leaves_of(value: Any) -> tuple[list[Any], pytree.TreeSpec]:
    """All leaves of a structure, tensors or not, and what puts them together again."""
    leaves, structure = pytree.tree_flatten(value)
    closed = {type(leaf) for leaf in leaves if is_dataclass(leaf) and not isinstance(leaf, type)}
    if not closed:
        return leaves, structure
    for kind in closed:
        pytree.register_dataclass(kind)
    return leaves_of(value)


def assemble(leaves: list[Any], structure: pytree.TreeSpec) -> Any:
    """Undo `leaves_of`."""
    return pytree.tree_unflatten(leaves, structure)


def join(parts: list[Any], sizes: tuple[int, ...]) -> Any:
    """One output for the whole batch from the outputs of its microbatches.

    Args:
        parts: one output per microbatch, all of one structure.
        sizes: number of samples of each microbatch.

    Returns:
        tensors with a microbatch's size on dim 0 joined there, 0-dim tensors stacked to shape
        [M]; what is the same for all microbatches once; other values as a tuple of M.
    """
    if len(parts) == 1:
        return parts[0]
    flat = [leaves_of(part) for part in parts]
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    return assemble([_join_leaf(column, sizes) for column in columns], flat[0][1])


def _join_leaf(column: tuple[Any, ...], sizes: tuple[int, ...]) -> Any:
    if not all(isinstance(leaf, Tensor) for leaf in column):
        return column[0] if all(leaf == column[0] for leaf in column) else column
    if all(leaf.dim() == 0 for leaf in column):
        return torch.stack(column)
    if all(leaf.dim() and leaf.shape[0] == size for leaf, size in zip(column, sizes, strict=True)):
        return torch.cat(column)
    return column[0] if all(_same(leaf, column[0]) for leaf in column) else column


def _same(one: Tensor, other: Tensor) -> bool:
    return one is other or (one.shape == other.shape and torch.equal(one, other))
