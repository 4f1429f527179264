"""Recomputing: a forward that keeps only its input, run again when its backward comes.

The second forward must see what the first one saw. Random streams are seeded anew in any case.
Buffers that a forward writes to are another matter: the first forward has counted the microbatch in
them, the second must start from where they stood before it, and must count nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, final

from torch import Tensor, nn

from ppframe.errors import ConfigError
from ppframe.stage import boundary

_Place: TypeAlias = tuple[nn.Module, str]
Before: TypeAlias = Mapping[_Place, Tensor]
"""Buffers that a forward wrote to, as they were before it."""


def without_graph(value: Any) -> Any:
    """The same tensors, cut from how they were made; they ask for gradients as before."""
    return boundary.map_tensors(_cut, value)


@final
class BufferRecord:
    """Knows which buffers of a stage's modules forwards write to.

    Statistics that torch's own norms keep don't show in a tensor's version; their outputs in
    training don't depend on them either, so only writing them twice must be prevented.

    Args:
        modules: the modules of the stage.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._modules = tuple(modules)
        self._written: set[_Place] | None = None

    @contextmanager
    def watching(self, before: dict[_Place, Tensor]) -> Iterator[None]:
        """Around a first forward: `before` gets what it writes to, as it was.

        Raises:
            ConfigError: it writes to a buffer that none before it wrote to.
        """
        places = self._places()
        watched = places if self._written is None else {p: places[p] for p in self._written}
        copies = {place: buffer.clone() for place, buffer in watched.items()}
        versions = {place: (buffer, buffer._version) for place, buffer in places.items()}
        yield
        after = self._places()
        written = {
            place
            for place, (buffer, version) in versions.items()
            if after.get(place) is not buffer or buffer._version != version
        }
        if self._written is not None and not written <= self._written:
            module, name = next(iter(written - self._written))
            raise ConfigError(
                f"must be `none` where a forward writes to a buffer that earlier ones left alone, "
                f"but is `full` (buffer `{name}` of {type(module).__name__}).",
                path="recompute",
            )
        self._written = written | (self._written or set())
        before.update({place: copies[place] for place in self._written})

    @contextmanager
    def replaying(self, before: Before) -> Iterator[None]:
        """Around a second forward: it gets copies of the buffers, as the first one found them."""
        places = self._places()
        copies: dict[int, Tensor] = {}
        for (module, name), buffer in places.items():
            source = before.get((module, name), buffer)
            module._buffers[name] = copies.setdefault(id(buffer), source.clone())
        try:
            yield
        finally:
            for (module, name), buffer in places.items():
                module._buffers[name] = buffer

    def _places(self) -> dict[_Place, Tensor]:
        return {
            (module, name): buffer
            for stem in self._modules
            for module in stem.modules()
            for name, buffer in module._buffers.items()
            if buffer is not None
        }


def _cut(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_(tensor.requires_grad)
