"""What a message holds beside the bytes of its tensors, and where each tensor lies in it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, final

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

ALIGNMENT: Final = 64
"""Every tensor of a message begins at a multiple of so many bytes."""

_SINGLE: Final = "tensor"
_FLAT: Final = "tuple"


class TensorSpec(NamedTuple):
    """What the receiver must know of a tensor."""

    dtype: torch.dtype
    shape: torch.Size
    requires_grad: bool


class Spec(NamedTuple):
    """What a value is, without the contents of its tensors.

    Two values of equal spec differ in the contents of their tensors only.

    Args:
        structure: how the leaves are nested; a word for the two common cases.
        leaves: for each leaf a tensor's spec, None for None, and anything else pickled.
    """

    structure: Any
    leaves: tuple[TensorSpec | bytes | None, ...]


def describe(value: Any) -> tuple[Spec, list[Tensor]]:
    """Spec of a value, and its tensors in the order of the leaves.

    Raises:
        TypeError: a tensor is not dense, or a leaf can't be pickled.
    """
    if isinstance(value, Tensor):
        return Spec(_SINGLE, (_leaf_spec(value),)), [value]
    leaves: Iterable[Any]
    structure: Any
    if type(value) is tuple and all(leaf is None or isinstance(leaf, Tensor) for leaf in value):
        leaves, structure = value, _FLAT
    else:
        leaves, structure = pytree.tree_flatten(value)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    return Spec(structure, tuple(map(_leaf_spec, leaves))), tensors


def to_bytes(spec: Spec) -> bytes:
    """What `from_bytes` makes the spec of, in another process."""
    structure, leaves = spec
    if not isinstance(structure, str):
        structure = pytree.tree_unflatten(range(len(leaves)), structure)
    return pickle.dumps((structure, leaves))


def from_bytes(header: bytes) -> Spec:
    """Undo `to_bytes`."""
    structure, leaves = pickle.loads(header)
    if not isinstance(structure, str):
        structure = pytree.tree_structure(structure)
    return Spec(structure, leaves)


def _leaf_spec(leaf: Any) -> TensorSpec | bytes | None:
    if leaf is None:
        return None
    if isinstance(leaf, Tensor):
        if leaf.layout is not torch.strided or leaf.is_nested or leaf.is_quantized:
            raise TypeError(f"a tensor must be dense, but is {leaf.layout} of {leaf.dtype}")
        return TensorSpec(leaf.dtype, leaf.shape, leaf.requires_grad)
    try:
        return pickle.dumps(leaf)
    except Exception as error:
        raise TypeError(
            f"a {type(leaf).__name__} must be one that can be pickled: {error}"
        ) from error


class _Place(NamedTuple):
    """Where a tensor lies: in elements of its own dtype from the start of the buffer."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    requires_grad: bool


@final
class Layout:
    """Where the tensors of a spec lie in one flat buffer.

    ::

        tensor 0 ··· tensor 1 ····· tensor 2
        ▲            ▲              ▲          each at a multiple of 64 bytes

    Args:
        spec: the spec.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._places: list[_Place] = []
        end = 0
        for leaf in spec.leaves:
            if isinstance(leaf, TensorSpec):
                start = _round_up(end, ALIGNMENT)
                self._places.append(_place(leaf, start))
                end = start + leaf.shape.numel() * leaf.dtype.itemsize
        self.capacity = _round_up(end, ALIGNMENT)
        """Bytes of a buffer that holds the tensors."""
        self._alone = self._places[0] if spec.structure == _SINGLE else None

    def new_buffer(self, num_bytes: int) -> Tensor:
        """A buffer for a message that is expected to have this layout.

        Args:
            num_bytes: its size, a multiple of the size of every dtype.
        """
        dtype = torch.uint8 if self._alone is None else self._alone.dtype
        return torch.empty(num_bytes // dtype.itemsize, dtype=dtype)

    def pack(self, tensors: Sequence[Tensor], buffer: Tensor) -> None:
        """Copy the tensors into the buffer."""
        with torch.no_grad():
            for place, tensor in zip(self._places, tensors, strict=True):
                _at(place, buffer).copy_(tensor)

    def flat(self, tensors: Sequence[Tensor]) -> Tensor:
        """One contiguous CPU tensor that holds the tensors: a lone one itself where it can be."""
        if len(tensors) == 1:
            alone = tensors[0].detach()
            if alone.is_conj() or alone.is_neg():
                alone = alone.resolve_conj().resolve_neg()
            return alone.cpu().contiguous()
        buffer = torch.empty(self.capacity, dtype=torch.uint8)
        self.pack(tensors, buffer)
        return buffer

    def unpack(self, buffer: Tensor, device: torch.device) -> Any:
        """The value; on the CPU its tensors share the buffer's memory.

        Each has a version counter of its own, so that writing to one is no change of another.
        """
        if self._alone is not None:
            return _arrive(self._alone, buffer, device)
        tensors = (_arrive(place, buffer, device) for place in self._places)
        leaves = [
            next(tensors) if isinstance(leaf, TensorSpec) else _other_leaf(leaf)
            for leaf in self.spec.leaves
        ]
        if self.spec.structure == _FLAT:
            return tuple(leaves)
        return pytree.tree_unflatten(leaves, self.spec.structure)


def _place(spec: TensorSpec, start: int) -> _Place:
    stride: list[int] = []
    step = 1
    for size in reversed(spec.shape):
        stride.insert(0, step)
        step *= max(size, 1)
    offset = start // spec.dtype.itemsize
    return _Place(spec.dtype, tuple(spec.shape), tuple(stride), offset, spec.requires_grad)


def _at(place: _Place, buffer: Tensor) -> Tensor:
    own = buffer.data  # with a version counter of its own
    typed = own if own.dtype is place.dtype else own.view(place.dtype)
    return typed.as_strided(place.shape, place.stride, place.offset)


def _arrive(place: _Place, buffer: Tensor, device: torch.device) -> Tensor:
    tensor = _at(place, buffer)
    if device.type != "cpu":
        tensor = tensor.to(device)
    return tensor.requires_grad_() if place.requires_grad else tensor


def _other_leaf(pickled: bytes | None) -> Any:
    return None if pickled is None else pickle.loads(pickled)


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
