"""What stands in the row of a rank, from top to bottom: boxes, measured boxes, lateness, memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from ppframe.simulator.boxes import LANE, BoxWriter
from ppframe.simulator.picture import Box, Row
from ppframe.simulator.texts import amount, bytes_text, clock_text, number

_LATE: Final = 16
_MEMORY: Final = 28
_HEADROOM: Final = 11
_LONGEST_LIST: Final = 13


@final
class Lane(NamedTuple):
    """One strip of a row.

    Args:
        name: what it shows.
        height: in pixels.
        tags: what stands at its left: class, text and place of the base line below its top.
        lines: its SVG elements.
    """

    name: str
    height: float
    tags: tuple[tuple[str, str, float], ...]
    lines: list[str]


@final
@dataclass(frozen=True, slots=True)
class LaneWriter:
    """Writes the lanes of every row of a picture.

    Args:
        boxes: writes the boxes.
        highest: level that the highest memory curve reaches.
        latest: most time by which an action ended later or earlier than predicted.
    """

    boxes: BoxWriter
    highest: float
    latest: float

    @classmethod
    def of(cls, boxes: BoxWriter) -> LaneWriter:
        """A writer under which the lanes of all rows have the same scale."""
        return cls(
            boxes=boxes,
            highest=max((row.peak[1] for row in boxes.picture.rows), default=0.0) or 1.0,
            latest=max((abs(box.late) for box in boxes.picture.boxes), default=0.0) or 1.0,
        )

    def lanes(self, row: Row) -> list[Lane]:
        """The lanes of a row; all rows have the same ones."""
        picture = self.boxes.picture
        stages = ", ".join(map(str, row.stages))
        if len(stages) > _LONGEST_LIST:
            stages = f"{row.stages[0]}, {row.stages[1]} … {row.stages[-1]}"
        word = "stage" if len(row.stages) == 1 else "stages"
        tags = (("rank", f"rank {row.rank}", 12.0), ("small", f"{word} {stages}", 25.0))
        lanes = [Lane("predicted", LANE, tags, self._computations(row.predicted))]
        if picture.measured is not None:
            measured = (("small", "measured", LANE / 2 + 4),)
            lanes.append(Lane("measured", LANE, measured, self._computations(row.measured)))
            latest = max((box.late for box in row.measured), default=0.0)
            text = f"max {clock_text(float(f'{max(0.0, latest):.2g}'), self.boxes.unit)} late"
            lateness = (("small", text, _LATE / 2 + 4),)
            lanes.append(Lane("late", _LATE, lateness, list(self._lateness(row.measured))))
        if any(other.curve for other in picture.rows):
            idle = picture.report.idle[row.rank] / (picture.report.makespan or 1.0)
            lanes.append(
                Lane(
                    "memory", _MEMORY, (("small", f"idle {idle:.0%}", 18.0),), [*self._memory(row)]
                )
            )
        return lanes

    def _computations(self, boxes: Iterable[Box]) -> list[str]:
        width = number(self.boxes.scale.width)
        back = f'<rect class="idle" width="{width}" height="{LANE}"/>'
        return [back, *map(self.boxes.written, boxes)]

    def _lateness(self, boxes: Iterable[Box]) -> Iterator[str]:
        """Bars up for actions that ended later than predicted, down for earlier ones."""
        middle, scale = _LATE / 2, self.boxes.scale
        for box in boxes:
            x, width = scale.extent(box.entry.start, box.entry.end)
            height = abs(box.late) / self.latest * middle
            top, look = (middle - height, "later") if box.late > 0 else (middle, "earlier")
            yield (
                f'<rect class="{look}" x="{number(x)}" y="{number(top)}" '
                f'width="{number(width)}" height="{number(height)}"/>'
            )
        yield f'<path class="zero" d="M0 {number(middle)}h{number(scale.width)}"/>'

    def _memory(self, row: Row) -> Iterator[str]:
        """The curve as an area, all ranks on one scale, with its peak marked."""
        scale, path = self.boxes.scale, f"M0 {_MEMORY}"
        changes = ((number(max(scale.x(t), 0.0)), h) for t, h in row.curve if t <= scale.end)
        for x_text, level in dict(changes).items():  # of changes at one place the last one stays
            path += f"H{x_text}V{number(self._height(level))}"
        yield f'<path class="area" d="{path}H{number(scale.width)}V{_MEMORY}Z"/>'
        time, peak = row.peak
        if scale.start <= time <= scale.end:
            x, top = scale.x(time), self._height(peak)
            text = bytes_text(peak) if self.boxes.picture.is_in_bytes else amount(peak)
            yield (
                f'<path class="mark" d="M{number(x - 4)} {number(top - 6)}h8l-4 6z"/>'
                f'<text class="peak" data-time="{time:.9g}" x="{number(x + 7)}" '
                f'y="{number(top - 2)}">peak {text}</text>'
            )

    def _height(self, level: float) -> float:
        return _MEMORY - level / self.highest * (_MEMORY - _HEADROOM)
