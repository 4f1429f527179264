"""Clocks that time actions: the host's, and CUDA events on the ranks' streams."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import torch


class Clock(ABC):
    """Marks moments on a rank, and says later when they were."""

    @abstractmethod
    def begin(self) -> None:
        """Set the zero of time."""

    @abstractmethod
    def mark(self, rank: int) -> Any:
        """Mark this moment in the rank's order of work."""

    @abstractmethod
    def seconds(self, rank: int, mark: Any) -> float:
        """Seconds from `begin` to a mark.

        Blocking: waits until the rank's work has come to the mark.
        """


@final
class HostClock(Clock):
    """Time of the host, for ranks whose work is done when the call returns."""

    def __init__(self) -> None:
        self._zero = 0

    def begin(self) -> None:
        """Set the zero of time."""
        self._zero = time.perf_counter_ns()

    def mark(self, rank: int) -> int:  # noqa: ARG002
        """Nanoseconds of the host's clock."""
        return time.perf_counter_ns()

    def seconds(self, rank: int, mark: int) -> float:  # noqa: ARG002
        """Seconds from `begin` to the mark."""
        return (mark - self._zero) * 1e-9


@final
class CudaClock(Clock):
    """Events on the compute stream of each rank.

    Args:
        streams: compute stream of each rank.
    """

    def __init__(self, streams: Sequence[torch.cuda.Stream]) -> None:
        self._streams = streams
        self._zeros: list[torch.cuda.Event] = []

    def begin(self) -> None:
        """Mark the start on every rank, when all devices have come to rest."""
        for stream in self._streams:
            torch.cuda.synchronize(stream.device)
        self._zeros = [self._event(stream) for stream in self._streams]

    def mark(self, rank: int) -> torch.cuda.Event:
        """An event behind all that the rank was given so far."""
        return self._event(self._streams[rank])

    def seconds(self, rank: int, mark: torch.cuda.Event) -> float:
        """Seconds on the device from its start to the event."""
        mark.synchronize()
        return float(self._zeros[rank].elapsed_time(mark)) * 1e-3

    @staticmethod
    def _event(stream: torch.cuda.Stream) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(stream)
        return event
