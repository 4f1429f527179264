"""Transport between processes, over a torch.distributed process group on gloo.

A message is one gloo message, from the sender's tensors into a buffer that the receiver posted
ahead; see `ppframe.transport.channel` for what travels when a boundary is new or has changed.

Only gloo is spoken. Where stages run on CUDA, tensors go through the host's memory: sending waits
for the device. NCCL, which could leave them on the device, is not supported: there a receiver can't
read what has arrived without waiting for the device either, so shapes would have to be agreed on
before a step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, final

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from ppframe.errors import InternalError, TransportError
from ppframe.transport.base import Direction, Message, Transport
from ppframe.transport.channel import ReceivingSide, SendingSide
from ppframe.transport.sends import Send, SendFailedError, SendsUnderWay, Waitable

_LANES: Final = {Direction.FORWARD: (0, 1), Direction.BACKWARD: (2, 3)}
"""Tags of a channel's main and side lane. Messages of different tags don't wait for each other."""


@final
class DistributedTransport(Transport):
    """Moves messages between this process's rank and the other ranks' processes.

    ::

        rank 1                               rank 2
        SendingSide   ── F, tags 0 and 1 ──▶ ReceivingSide
        ReceivingSide ◀── B, tags 2 and 3 ── SendingSide

    What arrives lies in memory of its own: tensors on the CPU share one buffer per message. What
    is sent is not copied where it needn't be, so it must not be changed before the step's
    `finish`.

    It is for one thread. While that waits in here, Python runs no signal handler; a wait ends with
    the message, with the peer, or with the time limit.

    Args:
        rank: pipeline rank of this process.
        group: a gloo group whose rank r is pipeline rank r, and which nobody else uses to send.
        device: where what arrives is needed; the CPU if not given.
        timeout_s: how long to wait for a message before its sender is taken to hang.
        ahead: how many receives of a channel are posted before they are needed; the same on all
            ranks. Each holds a buffer of the size of a boundary.

    Raises:
        TransportError: a peer is gone, hangs, or another message was expected. The connections
            are closed then; the transport can't be used any more.
    """

    def __init__(
        self,
        rank: int,
        *,
        group: ProcessGroup,
        device: torch.device | None = None,
        timeout_s: float = 300.0,
        ahead: int = 4,
    ) -> None:
        self._rank = rank
        self._group = group
        self._device = torch.device("cpu") if device is None else device
        self._timeout_s = timeout_s
        self._ahead = ahead
        self._sending: dict[tuple[int, Direction], SendingSide] = {}
        self._receiving: dict[tuple[int, Direction], ReceivingSide] = {}
        self._sends = SendsUnderWay()
        self._is_released = False

    def expect(self, messages: Sequence[Message]) -> None:
        """Say what this rank will receive in the coming step.

        Args:
            messages: in the order in which the step receives them; for each channel that is the
                order in which they are sent.

        Raises:
            InternalError: something that was expected before has not been received.
        """
        by_channel: defaultdict[tuple[int, Direction], list[Message]] = defaultdict(list)
        for message in messages:
            by_channel[message.sender, message.direction].append(message)
        if any(side.num_announced for side in self._receiving.values()):
            raise InternalError("All that was expected of a step must be received before the next.")
        for channel, expected in by_channel.items():
            try:
                self._receiver(channel).announce(expected)
            except RuntimeError as error:
                raise self._failure(expected[0], channel[0], error) from error

    def send(self, message: Message, value: Any) -> None:
        """Begin to send; see `Transport.send`.

        Raises:
            TransportError: the receiver is gone, or the value can't travel: it holds a tensor
                that is not dense, or something that can't be pickled.
        """
        side = self._sender((message.receiver, message.direction))

        def keep(work: Waitable, buffer: Tensor) -> None:
            self._sends.keep(Send(message, work, buffer))

        try:
            side.send(message, value, keep)
        except TypeError as error:
            raise TransportError(
                f"message {message} must hold dense tensors and values that can be pickled, but "
                f"{error}. Change what stage {message.sending_stage} returns.",
                peer=message.receiver,
                key=message,
            ) from error
        except SendFailedError as error:
            raise self._failure(error.message, error.message.receiver, error.cause) from error
        except RuntimeError as error:
            raise self._failure(message, message.receiver, error) from error

    def receive(self, message: Message) -> Any:
        """Take the next message of its channel; see `Transport.receive`."""
        try:
            return self._receiver((message.sender, message.direction)).receive(message)
        except RuntimeError as error:
            raise self._failure(message, message.sender, error) from error

    def finish(self) -> None:
        """End a step: wait until all that was sent has left.

        Blocking: until the receivers have posted what they need of it.

        Raises:
            TransportError: a receiver is gone, or hangs.
        """
        try:
            self._sends.finish(self._timeout_s)
        except SendFailedError as error:
            raise self._failure(error.message, error.message.receiver, error.cause) from error

    def num_pending(self) -> int:
        """How many sends are kept, as they are not known to be done; 0 after `finish`."""
        return self._sends.num_kept

    def release(self) -> None:
        """Let go of all that is under way. The transport can't be used any more."""
        self._is_released = True
        self._sends.drop()
        self._sending.clear()
        self._receiving.clear()

    def _sender(self, channel: tuple[int, Direction]) -> SendingSide:
        side = self._sending.get(channel)
        if side is None:
            side = self._sending[channel] = SendingSide(self._wire(channel), self._ahead)
        return side

    def _receiver(self, channel: tuple[int, Direction]) -> ReceivingSide:
        side = self._receiving.get(channel)
        if side is None:
            side = ReceivingSide(self._wire(channel), self._ahead, self._device)
            self._receiving[channel] = side
        return side

    def _wire(self, channel: tuple[int, Direction]) -> _GlooWire:
        peer, direction = channel
        if self._is_released:
            raise TransportError(
                "A transport must not be used after a failure, but is: start the processes anew.",
                peer=peer,
                key=direction,
            )
        return _GlooWire(self._group, peer, _LANES[direction], timedelta(seconds=self._timeout_s))

    def _failure(self, message: Message, peer: int, error: RuntimeError) -> TransportError:
        """What a RuntimeError of the backend means."""
        if "timed out" in str(error).lower():
            text = (
                f"must be through within {self._timeout_s:g} s, but rank {peer} did not answer. "
                "See what that rank is doing, or raise the time limit."
            )
        else:
            text = (
                f"must be delivered, but the connection to rank {peer} is closed. See why that "
                f"rank ended. ({error})"
            )
        return TransportError(f"message {message} {text}", peer=peer, key=message)


@final
class _Receive:
    """A receive that waits no longer than the time limit."""

    __slots__ = ("_timeout", "_work")

    def __init__(self, work: Waitable, timeout: timedelta) -> None:
        self._work = work
        self._timeout = timeout

    def wait(self) -> None:
        self._work.wait(self._timeout)


@final
class _GlooWire:
    """Two lanes to one peer: tags of a gloo group."""

    def __init__(
        self, group: ProcessGroup, peer: int, lanes: tuple[int, int], timeout: timedelta
    ) -> None:
        self._group = group
        self._peer = peer
        self._lanes = lanes
        self._timeout = timeout

    def send(self, buffer: Tensor, *, side: bool) -> Waitable:
        return self._group.send([buffer], self._peer, self._lanes[side])

    def receive(self, buffer: Tensor, *, side: bool) -> _Receive:
        work = self._group.recv([buffer], self._peer, self._lanes[side])
        return _Receive(work, self._timeout)
