"""The two sides of a channel: from values to buffers on a wire, and back.

A channel carries the messages of one direction from one rank to another, in order. In the steady
state a message is one buffer, and nothing else travels: the receiver has posted one of the size
that it expects, and the sender sends just the tensors, a lone one straight from where it lies::

    expected        [tensors ················]             the word stays 0, as the receiver set it
    known           [tensors, other layout ··][ number ]
    new             [tensors, other layout ··][ -length ]  the spec follows, `length` bytes
    too large       [                        ][  either ]  the tensors follow, after the spec

What follows goes over the wire's side lane, for which nothing is posted ahead. The sender knows
what the receiver expects, as both ask a `Forecast` that rests on the same messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from ctypes import c_int64
from typing import Any, Final, NamedTuple, Protocol, final

import torch
from torch import Tensor

from ppframe.errors import TransportError
from ppframe.transport.base import Message
from ppframe.transport.forecast import Book, Boundary, Forecast
from ppframe.transport.sends import Waitable
from ppframe.transport.spec import Layout, describe, from_bytes, to_bytes


class Receive(Protocol):
    """A receive under way."""

    def wait(self) -> None:
        """Wait until it is done.

        Raises:
            RuntimeError: the peer is gone, or the time is over.
        """


class Wire(Protocol):
    """Two lanes to one peer, each in order; a send may be shorter than the buffer for it."""

    def send(self, buffer: Tensor, *, side: bool) -> Waitable:
        """Begin to send a contiguous CPU tensor; never waits for the receiver."""

    def receive(self, buffer: Tensor, *, side: bool) -> Receive:
        """Begin to receive into a contiguous CPU tensor."""


Keep = Callable[[Waitable, Tensor], None]
"""Keeps a send and its buffer until it is done."""


_TAIL: Final = 16
"""Bytes behind the tensors, a multiple of the size of every dtype; the first eight are a word."""


def _word_of(buffer: Tensor, capacity: int) -> c_int64:
    """The word behind a buffer's tensors; valid while the buffer lives."""
    return c_int64.from_address(buffer.data_ptr() + capacity)


def _boundary_of(message: Message) -> Boundary:
    return message.sending_stage, message.receiving_stage


@final
class SendingSide:
    """Sends the messages of a channel.

    Args:
        wire: the wire to the receiver.
        ahead: how many messages the receiver posts ahead.
    """

    def __init__(self, wire: Wire, ahead: int) -> None:
        self._wire = wire
        self._forecast = Forecast(ahead)
        self._book = Book()

    def send(self, message: Message, value: Any, keep: Keep) -> None:
        """Send a value; the sends that this takes are given to `keep`."""
        spec, tensors = describe(value)
        boundary = _boundary_of(message)
        expected, capacity = self._forecast.next(boundary)
        if expected is not None and expected.spec == spec:
            self._forecast.note(boundary, expected)
            self._send(expected.flat(tensors), keep)
            return
        layout = Layout(spec)
        number = self._book.number_of(layout)
        if number is None:
            header = to_bytes(spec)
            word = -len(header)
            self._book.enter(layout)
        else:
            header, word = b"", number
            layout = self._book[number]
        self._forecast.note(boundary, layout)
        buffer = torch.empty(capacity + _TAIL, dtype=torch.uint8)
        _word_of(buffer, capacity).value = word
        if layout.capacity <= capacity:
            layout.pack(tensors, buffer)
        self._send(buffer, keep)
        if header:
            self._send(torch.frombuffer(bytearray(header), dtype=torch.uint8), keep, side=True)
        if layout.capacity > capacity:
            self._send(layout.flat(tensors), keep, side=True)

    def _send(self, buffer: Tensor, keep: Keep, *, side: bool = False) -> None:
        keep(self._wire.send(buffer, side=side), buffer)


class _Posted(NamedTuple):
    """A buffer that waits for its message."""

    message: Message
    expected: Layout | None
    capacity: int
    buffer: Tensor
    word: c_int64
    work: Receive


@final
class ReceivingSide:
    """Receives the messages of a channel.

    Args:
        wire: the wire to the sender.
        ahead: how many messages are posted ahead.
        device: where the tensors are needed.
    """

    def __init__(self, wire: Wire, ahead: int, device: torch.device) -> None:
        self._wire = wire
        self._ahead = ahead
        self._device = device
        self._forecast = Forecast(ahead)
        self._book = Book()
        self._announced: deque[Message] = deque()
        self._posted: deque[_Posted] = deque()

    def announce(self, messages: Iterable[Message]) -> None:
        """Say which messages come next; buffers for the first of them are posted."""
        self._announced.extend(messages)
        self._post()

    @property
    def num_announced(self) -> int:
        """How many messages were announced and not yet taken."""
        return len(self._announced) + len(self._posted)

    def receive(self, message: Message) -> Any:
        """Take the next message.

        Blocking: waits until it has arrived.

        Raises:
            TransportError: another message was announced in its place.
            RuntimeError: see `Receive`.
        """
        if len(self._posted) <= self._ahead // 2:
            self._post()
        if not self._posted:
            self.announce((message,))
        posted = self._posted[0]
        if posted.message is not message and posted.message != message:
            raise TransportError(
                f"message {message} must be the next of its channel, but {posted.message} is: "
                "receive in the order that was announced.",
                peer=message.sender,
                key=message,
            )
        posted.work.wait()
        self._posted.popleft()
        layout, buffer = self._read(posted)
        self._forecast.note(_boundary_of(message), layout)
        return layout.unpack(buffer, self._device)

    def _read(self, posted: _Posted) -> tuple[Layout, Tensor]:
        """Layout of what arrived, and the buffer that holds it."""
        word = posted.word.value
        if word == 0 and posted.expected is not None:
            return posted.expected, posted.buffer
        if word < 0:
            header = self._from_side(torch.empty(-word, dtype=torch.uint8))
            layout = Layout(from_bytes(bytes(header.tolist())))
            self._book.enter(layout)
        else:
            layout = self._book[word]
        if layout.capacity <= posted.capacity:
            return layout, posted.buffer
        return layout, self._from_side(torch.empty(layout.capacity, dtype=torch.uint8))

    def _from_side(self, buffer: Tensor) -> Tensor:
        self._wire.receive(buffer, side=True).wait()
        return buffer

    def _post(self) -> None:
        while self._announced and len(self._posted) < self._ahead:
            message = self._announced.popleft()
            expected, capacity = self._forecast.next(_boundary_of(message))
            size = capacity + _TAIL
            buffer = (
                torch.empty(size, dtype=torch.uint8)
                if expected is None
                else expected.new_buffer(size)
            )
            word = _word_of(buffer, capacity)
            word.value = 0
            work = self._wire.receive(buffer, side=False)
            self._posted.append(_Posted(message, expected, capacity, buffer, word, work))
