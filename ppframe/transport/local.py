"""Transport between ranks of one process: a message is a reference in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from ppframe.errors import TransportError
from ppframe.transport.base import Message, Transport

Move = Callable[[int, int, Any], Any]
"""(sender rank, receiver rank, value) → the value on the receiver's device."""


@final
class LocalTransport(Transport):
    """Hands values over in memory.

    Args:
        move: brings a value from the sender's device to the receiver's; None where all ranks share
            the memory of one CPU, then the very same tensors arrive.
    """

    def __init__(self, move: Move | None = None) -> None:
        self._move = move
        self._under_way: dict[Message, Any] = {}

    def send(self, message: Message, value: Any) -> None:
        """Put the value into the table; see `Transport.send`."""
        if message in self._under_way:
            raise TransportError(
                f"message {message} must be received before it is sent again.",
                peer=message.receiver,
                key=message,
            )
        self._under_way[message] = value

    def receive(self, message: Message) -> Any:
        """Take the value out of the table; see `Transport.receive`."""
        try:
            value = self._under_way.pop(message)
        except KeyError:
            raise TransportError(
                f"message {message} must be sent before it is received: one controller walks all "
                "ranks, so nobody else can send it.",
                peer=message.sender,
                key=message,
            ) from None
        return value if self._move is None else self._move(message.sender, message.receiver, value)

    def num_pending(self) -> int:
        """How many values lie in the table."""
        return len(self._under_way)

    def release(self) -> None:
        """Empty the table."""
        self._under_way.clear()
