"""Streams of the ranks, and borrows of tensors between streams.

On CUDA each rank has a compute stream and a p2p stream. A tensor made on one stream and read on
another is *borrowed*: the borrower waits for the moment at which the owner had made it, and the
memory is not given to anybody else before the borrower is through. On the CPU work is done when the
call returns, so the streams do nothing, and the same code runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, final

import torch
from torch import Tensor

from ppframe.errors import InternalError
from ppframe.runtime.clock import Clock, CudaClock, HostClock
from ppframe.stage import boundary


class Stream(Protocol):
    """What a borrow needs of a stream."""

    def wait_for(self, other: Stream) -> None:
        """Let what comes later on this stream wait for all that `other` has been given."""

    def uses(self, tensor: Tensor) -> None:
        """Keep the tensor's memory until this stream is through with what it was given."""


@final
class HostStream:
    """The order of the host itself: everything is done already."""

    def wait_for(self, other: Stream) -> None:
        """Nothing to wait for."""

    def uses(self, tensor: Tensor) -> None:
        """Nothing to keep."""


@final
class CudaStream:
    """A CUDA stream.

    Args:
        device: its device.
    """

    def __init__(self, device: torch.device) -> None:
        self.cuda = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def wait_for(self, other: Stream) -> None:
        """Wait on the device, not on the host."""
        if isinstance(other, CudaStream) and other.cuda != self.cuda:
            self.cuda.wait_stream(other.cuda)

    def uses(self, tensor: Tensor) -> None:
        """Tell the allocator."""
        if tensor.device == self.cuda.device:
            tensor.record_stream(self.cuda)


@final
class Borrow:
    """A value that one stream made and another reads, until it is dropped.

    Usable as a context, which drops at its end, or with an explicit `drop`.

    Args:
        value: a boundary or gradients.
        owner: the stream on which it was made.
        borrower: the stream on which it will be read.
        ledger: where open borrows are noted, to find those that nobody drops.
    """

    def __init__(self, value: Any, owner: Stream, borrower: Stream, ledger: set[Borrow]) -> None:
        borrower.wait_for(owner)
        self._value = value
        self._borrower = borrower
        self._ledger = ledger
        ledger.add(self)

    def __enter__(self) -> Any:
        return self._value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.drop()

    def drop(self) -> None:
        """End the borrow.

        Raises:
            InternalError: it was dropped before.
        """
        if self not in self._ledger:
            raise InternalError("A borrow must be dropped once, but was dropped twice.")
        self._ledger.discard(self)
        for tensor in boundary.tensors_of(self._value):
            self._borrower.uses(tensor)
        self._value = None


@final
class RankStreams:
    """Compute and p2p stream of each rank of this process.

    Args:
        devices: device of each rank; all of one type.
    """

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._devices = tuple(devices)
        self.is_cuda = any(device.type == "cuda" for device in devices)
        make = CudaStream if self.is_cuda else _host_stream
        self._compute: tuple[Any, ...] = tuple(make(device) for device in devices)
        self._p2p: tuple[Any, ...] = tuple(make(device) for device in devices)
        self.open_borrows: set[Borrow] = set()

    def clock(self) -> Clock:
        """A clock for actions on these streams."""
        if self.is_cuda:
            return CudaClock([stream.cuda for stream in self._compute])
        return HostClock()

    def wrap(self, rank: int, function: Callable[[Any], None]) -> Callable[[Any], None]:
        """The function as it must run on the rank: under its compute stream."""
        stream = self._compute[rank].cuda

        def on_stream(argument: Any) -> None:
            with torch.cuda.stream(stream):
                function(argument)

        return on_stream

    def move(self, sender: int, receiver: int, value: Any) -> Any:
        """Bring a value from one rank's device to another's, on the p2p streams.

        Sender's compute → receiver's p2p, which copies, → receiver's compute.
        """
        p2p, device = self._p2p[receiver], self._devices[receiver]

        def copy(tensor: Tensor) -> Tensor:
            moved = tensor.detach().to(device, non_blocking=True)
            return moved.requires_grad_(tensor.requires_grad)

        with Borrow(value, self._compute[sender], p2p, self.open_borrows) as lent:
            if self.is_cuda:
                with torch.cuda.stream(p2p.cuda):
                    moved = boundary.map_tensors(copy, lent)
            else:
                moved = boundary.map_tensors(copy, lent)
        with Borrow(moved, p2p, self._compute[receiver], self.open_borrows) as arrived:
            return arrived

    def begin_step(self) -> None:
        """Let the ranks wait for what the caller's streams still make, such as the batch."""
        for stream in self._compute if self.is_cuda else ():
            stream.cuda.wait_stream(torch.cuda.current_stream(stream.cuda.device))

    def end_step(self) -> None:
        """Let the caller's streams wait for the ranks, and check that no borrow is open.

        Raises:
            InternalError: a borrow was not dropped.
        """
        for stream in (*self._compute, *self._p2p) if self.is_cuda else ():
            torch.cuda.current_stream(stream.cuda.device).wait_stream(stream.cuda)
        if self.open_borrows:
            count = len(self.open_borrows)
            self.open_borrows.clear()
            raise InternalError(f"All borrows must be dropped after a step, but {count} are open.")


def _host_stream(device: torch.device) -> HostStream:  # noqa: ARG001
    return HostStream()
