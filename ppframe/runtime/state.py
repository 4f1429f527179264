"""Parameters and buffers of a pipeline, under the names of `nn.Sequential(*stages)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

from torch import Tensor, nn

from ppframe.errors import CheckpointError
from ppframe.runtime.layout import Layout, members
from ppframe.transport import Peers

NamedParameters = tuple[tuple[str, nn.Parameter], ...]


@final
class ModelState:
    """What the model holds; in a process of its own a rank has its part of it.

    Args:
        model: the unsplit model; modules of other processes have no memory.
        layout: which rank owns what, and which are here.
        peers: the processes.
    """

    def __init__(self, model: nn.Sequential, layout: Layout, peers: Peers) -> None:
        self._model = model
        self._layout = layout
        self._peers = peers
        self._owners = {str(index): rank for rank, index in members(layout)}

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters that are here; a shared one stands once."""
        return (pair for pair in self._model.named_parameters() if self._is_here(pair[0]))

    def by_rank(self) -> tuple[NamedParameters, ...]:
        """For each rank those it owns; a shared one belongs to its first stage's rank."""
        owned: list[list[tuple[str, nn.Parameter]]] = [[] for _ in range(self._layout.ranks)]
        for name, parameter in self.named_parameters():
            owned[self._owner(name)].append((name, parameter))
        return tuple(map(tuple, owned))

    def whole(self) -> dict[str, Any]:
        """The state of all ranks, put together on every process."""
        state = dict(self._model.state_dict())
        if self._peers.size == 1:
            return state
        parts = self._peers.gather({name: v for name, v in state.items() if self._is_here(name)})
        merged = None if parts is None else {k: v for part in parts for k, v in part.items()}
        shared = self._peers.broadcast(merged, 0)
        return {name: shared[name] for name in state}

    def load(self, state: Mapping[str, Any]) -> None:
        """Take what is here of the whole state.

        Raises:
            CheckpointError: names or shapes differ.
        """
        problems = [] if self._peers.size == 1 else self._misfits(state)
        here = [index for index, rank in self._owners.items() if self._layout.is_here(rank)]
        try:
            if problems:
                raise RuntimeError("\n".join(("The state must be of this model.", *problems)))
            if self._peers.size == 1:
                self._model.load_state_dict(dict(state), strict=True)
            else:
                for index in here:
                    self._model[int(index)].load_state_dict(_below(state, index), strict=True)
        except RuntimeError as error:
            raise CheckpointError(str(error), path="state_dict") from error

    def _misfits(self, state: Mapping[str, Any]) -> list[str]:
        """What doesn't fit, also of the modules that are elsewhere."""
        own = self._model.state_dict()
        missing = [f"`{name}` is missing." for name in own.keys() - state.keys()]
        unknown = [f"`{name}` is unknown." for name in state.keys() - own.keys()]
        shapes = [
            f"`{name}` has shape {list(state[name].shape)}, not {list(value.shape)}."
            for name, value in own.items()
            if name in state and isinstance(value, Tensor) and state[name].shape != value.shape
        ]
        return sorted(missing + unknown + shapes)

    def _owner(self, name: str) -> int:
        return self._owners[name.partition(".")[0]]

    def _is_here(self, name: str) -> bool:
        return self._layout.is_here(self._owner(name))


def _below(state: Mapping[str, Any], index: str) -> dict[str, Any]:
    """The entries of one module, under its own names."""
    prefix = f"{index}."
    return {name.removeprefix(prefix): v for name, v in state.items() if name.startswith(prefix)}
