"""What a transport promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, final


@final
class Direction(Enum):
    """Which way a message goes: activations forward, gradients backward."""

    FORWARD = "F"
    BACKWARD = "B"


@final
@dataclass(frozen=True, slots=True)
class Message:
    """Name of one message.

    Args:
        direction: forward or backward.
        sending_stage: stage whose output, or whose input's gradient, travels.
        receiving_stage: the stage next to it.
        microbatch: index of the microbatch.
        sender: rank of the sending stage.
        receiver: rank of the receiving stage.
    """

    direction: Direction
    sending_stage: int
    receiving_stage: int
    microbatch: int
    sender: int
    receiver: int

    def __str__(self) -> str:
        letter = self.direction.value
        return (
            f"{self.sending_stage}SEND_{letter}{self.microbatch} → "
            f"{self.receiving_stage}RECV_{letter}{self.microbatch}"
        )


class Transport(ABC):
    """Moves messages between ranks.

    Messages of one direction between the same two ranks arrive in the order in which they were
    sent. What is sent must not be changed until it is received.
    """

    def expect(self, messages: Sequence[Message]) -> None:  # noqa: B027 (most have no use for it)
        """Hear what will be received until `finish`, so that receives can be posted ahead.

        Args:
            messages: those whose receiver is in this process, in the order of its list.
        """

    def finish(self) -> None:  # noqa: B027
        """End a step.

        Blocking: until everything that was sent has left.

        Raises:
            TransportError: something can't leave any more.
        """

    @abstractmethod
    def send(self, message: Message, value: Any) -> None:
        """Give a message away.

        Args:
            message: its name; each is sent once a step.
            value: a boundary, or the gradients of one.

        Blocking: never waits for the receiver.
        """

    @abstractmethod
    def receive(self, message: Message) -> Any:
        """Take a message.

        Blocking: waits until it has arrived.

        Raises:
            TransportError: it can't arrive any more.
        """

    @abstractmethod
    def num_pending(self) -> int:
        """How many messages were sent and not received."""

    @abstractmethod
    def release(self) -> None:
        """Drop all messages that are under way, after a failure."""
