"""Stage: a contiguous run of model chunks, forward and backward, microbatch by microbatch."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import torch
from torch import Tensor, nn

from ppframe.stage import auxiliary, boundary
from ppframe.stage.backward import Saved, Term, full_backward, input_backward
from ppframe.stage.boundary import Gradients
from ppframe.stage.randomness import ChunkStream
from ppframe.stage.recompute import Before, BufferRecord, without_graph
from ppframe.stage.split import WeightWork, backward_weight

_log = logging.getLogger(__name__)

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
        recompute: whether a forward keeps its input only, and is run again in the backward.
    """

    def __init__(
        self,
        index: int,
        chunks: Sequence[tuple[int, nn.Module]],
        *,
        device: torch.device,
        seed: int,
        head: Head | None = None,
        recompute: bool = False,
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
        self._recompute = recompute
        self._modules = tuple(module for _, module in chunks)
        self._saved: dict[int, Saved] = {}
        self._buffers = BufferRecord(self._modules)
        self._to_recompute: dict[int, tuple[Any, Mapping[str, Any], Before]] = {}
        self._auxiliary_weights: Sequence[float] = ()
        self._waiting: dict[int, WeightWork] = {}
        self._num_waiting: int | None = None
        self._outside_autocast: AbstractContextManager[object] = nullcontext()
        self._writes_input: bool | None = None

    def begin_step(self, step: int, auxiliary_weights: Sequence[float] = ()) -> None:
        """Get ready for the microbatches of a step.

        Args:
            step: number of the step, for the random streams.
            auxiliary_weights: for each microbatch, what its auxiliary losses are multiplied by.
        """
        self._auxiliary_weights = auxiliary_weights
        kind = self.device.type
        autocast = torch.is_autocast_enabled(kind)
        self._outside_autocast = torch.autocast(kind, enabled=False) if autocast else nullcontext()
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
        if not self._recompute:
            output, collected, self._saved[microbatch] = self._record(microbatch, value, arguments)
            return output, collected
        kept = value if self._is_first else without_graph(value)
        before: dict[tuple[nn.Module, str], Tensor] = {}
        with self._buffers.watching(before):
            output, collected, _ = self._record(microbatch, value, arguments)
        self._to_recompute[microbatch] = kept, arguments, before
        return without_graph(output), [value.detach() for value in collected]

    def infer(
        self, microbatch: int, value: Any, arguments: Mapping[str, Any]
    ) -> tuple[Any, list[Tensor]]:
        """Run a microbatch and keep nothing; call it without gradients. Returns as `forward`."""
        if self._is_first:
            value = self._batch(value)
        collected = auxiliary.begin_collecting()
        output = self._run(microbatch, value, arguments)
        auxiliary.stop_collecting()
        return self._own(output), collected

    def backward(self, microbatch: int, gradients: Gradients) -> Gradients:
        """Full backward of a microbatch: parameters' `.grad` grow, what was kept is released.

        Args:
            microbatch: index of the microbatch.
            gradients: for each tensor of the output; empty for the last stage.

        Returns:
            gradients for the tensors that arrived; empty for stage 0.
        """
        saved = self._recorded(microbatch)
        with self._outside_autocast:
            return full_backward(saved, gradients)

    def backward_input(self, microbatch: int, gradients: Gradients) -> Gradients:
        """B: as `backward`, less the gradients of weights that can wait for `backward_weight`."""
        saved = self._recorded(microbatch)
        with self._outside_autocast:
            arrived, self._waiting[microbatch] = input_backward(saved, gradients)
        if self._num_waiting is None:
            self._num_waiting = len({weight.end for weight, _ in self._waiting[microbatch]})
            self._tell_of_split()
        return arrived

    def backward_weight(self, microbatch: int) -> None:
        """W: the gradients of weights that `backward_input` left; releases what it kept."""
        work = self._waiting.pop(microbatch)
        with self._outside_autocast:
            backward_weight(work)

    @property
    def num_kept(self) -> int:
        """How many microbatches ran forward and not yet the last part of their backward."""
        return len(self._saved) + len(self._to_recompute) + len(self._waiting)

    @property
    def num_waiting_weights(self) -> int | None:
        """How many parameters' gradients waited for W, at the first B; None before one."""
        return self._num_waiting

    def release(self) -> None:
        """Drop all that is kept, after a failure."""
        auxiliary.stop_collecting()
        self._saved.clear()
        self._to_recompute.clear()
        self._waiting.clear()

    def _tell_of_split(self) -> None:
        """Say so where the whole backward runs in B, at the first one."""
        trained = any(p.requires_grad for module in self._modules for p in module.parameters())
        if trained and not self._num_waiting:
            _log.info(
                "stage %d runs its whole backward in B: the gradients of its weights can't wait "
                "for W, as no product of a matrix and a parameter is found in it.",
                self.index,
            )

    def _recorded(self, microbatch: int) -> Saved:
        """What the backward of a microbatch needs; it is let go here."""
        if not self._recompute:
            return self._saved.pop(microbatch)
        value, arguments, before = self._to_recompute.pop(microbatch)
        with self._buffers.replaying(before):
            return self._record(microbatch, value, arguments)[2]

    def _record(
        self, microbatch: int, value: Any, arguments: Mapping[str, Any]
    ) -> tuple[Any, list[Tensor], Saved]:
        """Run a microbatch with autograd: output, auxiliary losses, what its backward needs."""
        leaves, value = self._enter(value)
        collected = auxiliary.begin_collecting()
        output = self._run(microbatch, value, arguments)
        auxiliary.stop_collecting()
        if self._writes_input is None:
            self._writes_input = _was_written(leaves, value)
        terms: list[Term] = []
        if collected:
            weight = self._auxiliary_weights[microbatch]
            terms += [(term, torch.full_like(term, weight)) for term in collected]
        output = self._own(output)
        if self._head is not None:
            terms.append(self._head(microbatch, output))
            return output, collected, Saved(leaves, (), terms)
        return output, collected, Saved(leaves, boundary.tensors_of(output), terms)

    def _own(self, output: Any) -> Any:
        """The output, with copies of what is a buffer's memory: a later forward may write to it."""
        if isinstance(output, Tensor) and output.requires_grad:
            return output
        buffers = {
            buffer.untyped_storage().data_ptr()
            for module in self._modules
            for buffer in module.buffers()
            if buffer.layout is torch.strided
        }
        if not buffers:
            return output

        def own(tensor: Tensor) -> Tensor:
            if tensor.requires_grad or tensor.layout is not torch.strided:
                return tensor
            is_alias = tensor.untyped_storage().data_ptr() in buffers
            return tensor.clone() if is_alias else tensor

        return boundary.map_tensors(own, output)

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

    def _batch(self, value: Any) -> Any:
        """The caller's inputs, or copies where a forward writes to them or nobody knows yet."""
        is_safe = self._writes_input is False and not self._recompute
        return value if is_safe else boundary.map_tensors(torch.clone, value)

    def _enter(self, value: Any) -> tuple[tuple[Tensor | None, ...], Any]:
        """Detach what arrived: the leaves that collect gradients, and the value to run on.

        A module that writes to its input can't be given a leaf, so it gets a copy, as does every
        stage at its first microbatch, which shows whether it writes. The copy also keeps intact
        what the sender's backward still needs. Stage 0 gets copies of the batch likewise.
        """
        if self._is_first:
            return (), self._batch(value)
        if isinstance(value, Tensor) and value.requires_grad and self._writes_input is False:
            leaf = value.detach().requires_grad_()
            return (leaf,), leaf
        leaves: list[Tensor | None] = []

        def enter(tensor: Tensor) -> Tensor:
            if not tensor.requires_grad:
                leaves.append(None)
                return tensor.clone() if self._recompute else tensor
            leaf = tensor.detach().requires_grad_()
            leaves.append(leaf)
            return leaf if self._writes_input is False else leaf.clone()

        entered = boundary.map_tensors(enter, value)
        return tuple(leaves), entered


def _was_written(leaves: tuple[Tensor | None, ...], value: Any) -> bool:
    """Whether a module wrote to one of the copies it was given, in place of leaves or inputs."""
    given = boundary.tensors_of(value)
    is_copy = [leaf is not None for leaf in leaves] if leaves else [True] * len(given)
    return any(tensor._version > 0 for tensor, own in zip(given, is_copy, strict=True) if own)


def _named_arguments(module: nn.Module) -> frozenset[str]:
    """Names of the parameters that a module's forward can take by keyword."""
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(module.forward).parameters.values()
    return frozenset(parameter.name for parameter in parameters if parameter.kind in by_keyword)
