"""Runner: one stage with the buffers around it; what the executor calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, final

from torch import Tensor

from ppframe.runtime.buffers import Buffer
from ppframe.stage import Stage
from ppframe.stage.boundary import Gradients
from ppframe.transport import Message, Transport


class Taker(Protocol):
    """Takes values by microbatch: a buffer, or what stands at the end of a pipeline."""

    def __setitem__(self, microbatch: int, value: Any, /) -> None:
        """Take the value of a microbatch."""


@final
class StageRunner:
    """Carries out the actions of one stage.

    Where the next stage sits on the same rank, an output is put straight into its buffer;
    otherwise it waits in `outputs` for its SEND_F. Gradients go the same way back.

        activations ──F──▶ outputs ──SEND_F──▶ … ──RECV_F──▶ activations of the next stage
        input_gradients ◀──BW── gradients ◀──RECV_B── …

    Args:
        stage: the stage.
        transport: carries what leaves the rank.
        is_last: whether the stage ends the pipeline.
    """

    def __init__(self, stage: Stage, transport: Transport, *, is_last: bool) -> None:
        index = stage.index
        self.stage = stage
        self.activations: Buffer = Buffer(f"activations of stage {index}")
        self.outputs: Buffer = Buffer(f"outputs of stage {index}")
        self.gradients: Buffer = Buffer(f"gradients of stage {index}")
        self.input_gradients: Buffer = Buffer(f"input gradients of stage {index}")
        self.auxiliary: dict[int, list[Tensor]] = {}
        self._forward_to: Taker = self.outputs
        self._backward_to: Taker = self.input_gradients
        self._transport = transport
        self._is_first = index == 0
        self._is_last = is_last
        self._arguments: Sequence[Mapping[str, Any]] = ()

    def join(self, following: StageRunner) -> None:
        """Hand over directly to the next stage, which sits on the same rank."""
        self._forward_to = following.activations
        following._backward_to = self.gradients

    def finish_with(self, taker: Taker) -> None:
        """Give the outputs of the last stage to `taker`, in walks without backward."""
        self._forward_to = taker

    def begin_step(self, arguments: Sequence[Mapping[str, Any]]) -> None:
        """Take the keyword arguments of the step's microbatches."""
        self._arguments = arguments
        self.auxiliary.clear()

    def forward(self, microbatch: int) -> None:
        """F: run the stage and keep what its backward needs."""
        output, collected = self.stage.forward(
            microbatch, self.activations.pop(microbatch), self._arguments[microbatch]
        )
        if collected:
            self.auxiliary[microbatch] = [value.detach() for value in collected]
        if not self._is_last:
            self._forward_to[microbatch] = output

    def infer(self, microbatch: int) -> None:
        """F of a plan without backward: run the stage, keep nothing but the output."""
        output, collected = self.stage.infer(
            microbatch, self.activations.pop(microbatch), self._arguments[microbatch]
        )
        if collected:
            self.auxiliary[microbatch] = collected
        self._forward_to[microbatch] = output

    def backward(self, microbatch: int) -> None:
        """BW: gradients for the parameters and for the input."""
        arrived: Gradients = () if self._is_last else self.gradients.pop(microbatch)
        gradients = self.stage.backward(microbatch, arrived)
        if not self._is_first:
            self._backward_to[microbatch] = gradients

    def backward_input(self, microbatch: int) -> None:
        """B: the gradient for the input, and what of the parameters' can't wait."""
        arrived: Gradients = () if self._is_last else self.gradients.pop(microbatch)
        gradients = self.stage.backward_input(microbatch, arrived)
        if not self._is_first:
            self._backward_to[microbatch] = gradients

    def backward_weight(self, microbatch: int) -> None:
        """W: the rest of the parameters' gradients."""
        self.stage.backward_weight(microbatch)

    def send_forward(self, message: Message) -> None:
        """SEND_F: give an output away."""
        self._transport.send(message, self.outputs.pop(message.microbatch))

    def receive_forward(self, message: Message) -> None:
        """RECV_F: take the boundary that the previous stage sent."""
        self.activations[message.microbatch] = self._transport.receive(message)

    def send_backward(self, message: Message) -> None:
        """SEND_B: give the gradients of the input away."""
        self._transport.send(message, self.input_gradients.pop(message.microbatch))

    def receive_backward(self, message: Message) -> None:
        """RECV_B: take the gradients of the output."""
        self.gradients[message.microbatch] = self._transport.receive(message)

    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers around the stage."""
        return (self.activations, self.outputs, self.gradients, self.input_gradients)

    def release(self) -> None:
        """Drop everything, after a failure or at the end of a step."""
        self._arguments = ()
        self.auxiliary.clear()
        self.stage.release()
        for buffer in self.buffers():
            buffer.clear()
