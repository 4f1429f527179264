"""From times to places on a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from ppframe.simulator.picture import Picture

_BOX_WIDTH: Final = 26.0
_MIN_WIDTH: Final = 420.0
_TICK_WIDTH: Final = 64.0


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """The time axis of a drawing.

    Args:
        start: time at its left end.
        end: time at its right end.
        per_unit: pixels for a unit of time.
    """

    start: float
    end: float
    per_unit: float

    @classmethod
    def of(cls, picture: Picture, max_width: float) -> Scale:
        """A scale that gives most boxes room for their numbers, and stays within a width."""
        span = picture.end - picture.start
        if span <= 0:
            return cls(picture.start, picture.start + 1.0, _MIN_WIDTH)
        durations = sorted(b.entry.duration for b in picture.boxes if b.entry.duration > 0)
        # One tiny action would stretch the whole drawing: the shortest quarter doesn't count.
        typical = durations[len(durations) // 4] if durations else span
        wanted = max(span * _BOX_WIDTH / typical, _MIN_WIDTH)
        return cls(picture.start, picture.end, min(wanted, max_width) / span)

    @property
    def width(self) -> float:
        """Pixels from end to end."""
        return (self.end - self.start) * self.per_unit

    def x(self, time: float) -> float:
        """The place of a time."""
        return (time - self.start) * self.per_unit

    def extent(self, start: float, end: float) -> tuple[float, float]:
        """Place and width of a span of time, as far as it lies on the axis."""
        first, last = max(start, self.start), min(end, self.end)
        return self.x(first), max(0.0, (last - first) * self.per_unit)

    def ticks(self) -> Iterator[float]:
        """Times to write at the axis: round ones, far enough apart."""
        step = round_step(_TICK_WIDTH / self.per_unit)
        for index in range(math.ceil(self.start / step), math.floor(self.end / step + 1e-9) + 1):
            yield index * step


def round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is no smaller than this.

    Example:
        >>> [round_step(least) for least in (0.7, 1.5, 30.0)]
        [1.0, 2.0, 50.0]
    """
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least)
