"""Stage: a contiguous run of model chunks, forward and backward, microbatch by microbatch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from ppframe.stage import auxiliary, boundary
from ppframe.stage.backward import Saved, Term, full_backward
from ppframe.stage.boundary import Gradients
from ppframe.stage.randomness import ChunkStream

Head = Callable[[int, Any], Term]
"""(microbatch, output of the last stage) → loss of the microbatch and what to multiply it by."""


@final
class Stage:
    """Runs one stage; holds what the backward of each microbatch needs, and nothing longer.

        received ──detach──▶ leaf ──▶ chunk ──▶ chunk ──▶ output ──▶ next stage, or the head
                              │ .grad                        ▲
        gradient for it ◀─────┘ ◀─────────── backward ───────┘ gradient of the output

    What arrives is detached; tensors whose producer wants a gradient become leaves that collect it.
    Nothing is run on made-up data, and no state of a module is touched beside what its own forward
    does.

    Args:
        index: stage index, 0 is the first.
        chunks: model chunks in forward order, each with its index in the unsplit model.
        device: where the stage runs.
        seed: seed of the random streams.
        head: the loss, for the last stage.
    """

    def __init__(
        self,
        index: int,
        chunks: Sequence[tuple[int, nn.Module]],
        *,
        device: torch.device,
        seed: int,
        head: Head | None = None,
    ) -> None:
        self.index = index
        self.device = device
        self._streams = tuple(ChunkStream(seed, number, device) for number, _ in chunks)
        self._chunks = tuple(
            (module, stream.enter, _named_arguments(module))
            for (_, module), stream in zip(chunks, self._streams, strict=True)
        )
        self.argument_names = frozenset().union(*(names for _, _, names in self._chunks))
        self._is_first = index == 0
        self._head = head
        self._saved: dict[int, Saved] = {}
        self._auxiliary_weights: Sequence[float] = ()
        self._autocast = False
        self._writes_input: bool | None = None

    def begin_step(self, step: int, auxiliary_weights: Sequence[float] = ()) -> None:
        """Get ready for the microbatches of a step.

        Args:
            step: number of the step, for the random streams.
            auxiliary_weights: for each microbatch, what its auxiliary losses are multiplied by.
        """
        self._auxiliary_weights = auxiliary_weights
        self._autocast = torch.is_autocast_enabled(self.device.type)
        for stream in self._streams:
            stream.begin_step(step)

    def forward(
        self, microbatch: int, value: Any, arguments: Mapping[str, Any]
    ) -> tuple[Any, list[Tensor]]:
        """Run a microbatch and keep what its backward needs.

        Args:
            microbatch: index of the microbatch.
            value: the boundary that arrived, or the inputs for stage 0.
            arguments: keyword arguments of this microbatch; each chunk gets those it names.

        Returns:
            the output, still with its graph, and the auxiliary losses that modules added.
        """
        leaves: tuple[Tensor | None, ...] = ()
        if not self._is_first:
            leaves, value = self._enter(value)
        collected = auxiliary.begin_collecting()
        output = self._run(microbatch, value, arguments)
        auxiliary.stop_collecting()
        if self._writes_input is None and not self._is_first:
            self._writes_input = _was_written(leaves, value)
        terms: list[Term] = []
        if collected:
            weight = self._auxiliary_weights[microbatch]
            terms += [(term, torch.full_like(term, weight)) for term in collected]
        if self._head is not None:
            terms.append(self._head(microbatch, output))
            self._saved[microbatch] = Saved(leaves, (), terms)
        else:
            self._saved[microbatch] = Saved(leaves, boundary.tensors_of(output), terms)
        return output, collected

    def infer(
        self, microbatch: int, value: Any, arguments: Mapping[str, Any]
    ) -> tuple[Any, list[Tensor]]:
        """Run a microbatch and keep nothing; call it without gradients. Returns as `forward`."""
        collected = auxiliary.begin_collecting()
        output = self._run(microbatch, value, arguments)
        auxiliary.stop_collecting()
        return output, collected

    def backward(self, microbatch: int, gradients: Gradients) -> Gradients:
        """Full backward of a microbatch: parameters' `.grad` grow, what was kept is released.

        Args:
            microbatch: index of the microbatch.
            gradients: for each tensor of the output; empty for the last stage.

        Returns:
            gradients for the tensors that arrived; empty for stage 0.
        """
        saved = self._saved.pop(microbatch)
        if self._autocast:
            with torch.autocast(self.device.type, enabled=False):
                return full_backward(saved, gradients)
        return full_backward(saved, gradients)

    @property
    def num_kept(self) -> int:
        """How many microbatches ran forward and not yet backward."""
        return len(self._saved)

    def release(self) -> None:
        """Drop all that is kept, after a failure."""
        auxiliary.stop_collecting()
        self._saved.clear()

    def _run(self, microbatch: int, value: Any, arguments: Mapping[str, Any]) -> Any:
        for module, seed_stream, names in self._chunks:
            seed_stream(microbatch)
            inputs = value if isinstance(value, tuple) else (value,)
            if arguments and names:
                named = {name: arguments[name] for name in names if name in arguments}
                value = module(*inputs, **named)
            else:
                value = module(*inputs)
        return value

    def _enter(self, value: Any) -> tuple[tuple[Tensor | None, ...], Any]:
        """Detach what arrived: the leaves that collect gradients, and the value to run on.

        A module that writes to its input can't be given a leaf, so it gets a copy, as does every
        stage at its first microbatch, which shows whether it writes. The copy also keeps intact
        what the sender's backward still needs.
        """
        if isinstance(value, Tensor) and value.requires_grad and self._writes_input is False:
            leaf = value.detach().requires_grad_()
            return (leaf,), leaf
        leaves: list[Tensor | None] = []

        def enter(tensor: Tensor) -> Tensor:
            if not tensor.requires_grad:
                leaves.append(None)
                return tensor
            leaf = tensor.detach().requires_grad_()
            leaves.append(leaf)
            return leaf if self._writes_input is False else leaf.clone()

        entered = boundary.map_tensors(enter, value)
        return tuple(leaves), entered


def _was_written(leaves: tuple[Tensor | None, ...], value: Any) -> bool:
    """Whether a module wrote to one of the copies it was given in place of leaves."""
    given = zip(leaves, boundary.tensors_of(value), strict=True)
    return any(tensor._version > 0 for leaf, tensor in given if leaf is not None)


def _named_arguments(module: nn.Module) -> frozenset[str]:
    """Names of the parameters that a module's forward can take by keyword."""
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(module.forward).parameters.values()
    return frozenset(parameter.name for parameter in parameters if parameter.kind in by_keyword)
