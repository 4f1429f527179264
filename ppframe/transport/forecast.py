"""What a receiver may expect of a message before it has seen the ones just before it."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, final

from ppframe.transport.spec import Layout

Boundary = tuple[int, int]
"""(sending stage, receiving stage)."""

_PATIENCE: Final = 64
"""After so many messages in a row that are smaller, a boundary's buffers become smaller."""


class Expected(NamedTuple):
    """What the buffer of a message is made for.

    Args:
        layout: of the message, if it is like the last one; None when there was none.
        capacity: bytes for tensors; those of the largest message of late.
    """

    layout: Layout | None
    capacity: int


_NOTHING: Final = Expected(None, 0)


@final
class Forecast:
    """Foretells the messages of one channel, the same on both of its sides.

    The receiver posts the buffer of message n when it has taken message n - ahead. So that the
    sender comes to the same forecast, whatever it has sent since, that for message n rests on
    messages up to n - ahead only::

        noted:     0  1  2  3  4  5            ahead = 3
        next for:           3  4  5  6  7  8   message 6 is foretold from 0 to 3

    Args:
        ahead: how many messages are posted ahead.
    """

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead
        self._num_foretold = 0
        self._num_applied = 0
        self._noted: deque[tuple[Boundary, Layout]] = deque()
        self._expected: dict[Boundary, Expected] = {}
        self._num_smaller: dict[Boundary, int] = {}

    def next(self, boundary: Boundary) -> Expected:
        """Foretell the channel's next message, which is of this boundary."""
        while self._num_applied <= self._num_foretold - self._ahead:
            self._apply(*self._noted.popleft())
        self._num_foretold += 1
        return self._expected.get(boundary, _NOTHING)

    def note(self, boundary: Boundary, layout: Layout) -> None:
        """Learn what the channel's next message was: on one side sent, on the other taken."""
        self._noted.append((boundary, layout))

    def _apply(self, boundary: Boundary, layout: Layout) -> None:
        self._num_applied += 1
        expected = self._expected.get(boundary, _NOTHING)
        size = layout.capacity
        if size < expected.capacity:
            smaller = self._num_smaller.get(boundary, 0) + 1
            self._num_smaller[boundary] = smaller
            size = size if smaller >= _PATIENCE else expected.capacity
        elif self._num_smaller:
            self._num_smaller.pop(boundary, None)
        if layout is not expected.layout or size != expected.capacity:
            self._expected[boundary] = Expected(layout, size)


@final
class Book:
    """The layouts that both sides of a channel know by number, from 1; the oldest is forgotten."""

    def __init__(self, size: int = 16) -> None:
        self._size = size
        self._num_entered = 0
        self._layouts: dict[int, Layout] = {}

    def number_of(self, layout: Layout) -> int | None:
        """Number of the layout with this spec, or None."""
        known = (n for n, other in self._layouts.items() if other.spec == layout.spec)
        return next(known, None)

    def enter(self, layout: Layout) -> int:
        """Enter a layout; both sides do so at the same message."""
        number = self._num_entered % self._size + 1
        self._num_entered += 1
        self._layouts[number] = layout
        return number

    def __getitem__(self, number: int) -> Layout:
        return self._layouts[number]
