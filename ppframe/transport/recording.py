"""A transport that writes down what it moves: the twin for tests and debugging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from ppframe.transport.base import Message, Transport


@final
class RecordingTransport(Transport):
    """Passes everything on to another transport and keeps the names of the messages.

    Args:
        inner: the transport that does the work.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.sent: list[Message] = []
        self.received: list[Message] = []

    def expect(self, messages: Sequence[Message]) -> None:
        """Pass on."""
        self._inner.expect(messages)

    def finish(self) -> None:
        """Pass on."""
        self._inner.finish()

    def send(self, message: Message, value: Any) -> None:
        """Note the message and pass it on."""
        self.sent.append(message)
        self._inner.send(message, value)

    def receive(self, message: Message) -> Any:
        """Take the message from the inner transport and note it."""
        value = self._inner.receive(message)
        self.received.append(message)
        return value

    def num_pending(self) -> int:
        """As the inner transport says."""
        return self._inner.num_pending()

    def release(self) -> None:
        """Release the inner transport; the notes stay."""
        self._inner.release()
