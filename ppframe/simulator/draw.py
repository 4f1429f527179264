"""Timelines as text for a terminal: a row per rank, time from left to right.

1F1B on 2 ranks, 3 microbatches, the backward twice as long as the forward::

    rank 0 │0F0 0F1 ········0BW0    0F2 0BW1    ····0BW2    │
    rank 1 │····1F0 1BW0    1F1 1BW1    1F2 1BW2    ········│

The text is plain, or markup for rich; neither needs a terminal.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import attrgetter
from typing import final

from ppframe.errors import ConfigError
from ppframe.schedule import Action
from ppframe.schedule.action import parts
from ppframe.simulator.labels import LEVELS, Labels
from ppframe.simulator.looks import Looks
from ppframe.simulator.timeline import Timeline, TimelineEntry, microbatch_of

IDLE = "·"
MINIMUM_WIDTH = 30


def draw_terminal(timeline: Timeline, *, width: int = 100, markup: bool = False) -> str:
    """Rows of cells, a legend, and a note when not all could be shown.

    A cell is as wide as its action is long. It names the action in full (`4F0`) where the width
    allows, else by kind and microbatch (`F0`), else by one letter; letters in lower case, and with
    markup other shades, tell the chunks of a rank from each other. Transfers are not drawn: a rank
    that waits is idle. Where not even one letter per action fits, the beginning is drawn.

    Args:
        timeline: entries in any order, predicted or measured.
        width: columns to stay within, at least 30.
        markup: colours as markup for rich: `rich.print(draw_terminal(..., markup=True))`.

    Returns:
        lines, without a newline at the end.

    Raises:
        ConfigError: width is below 30.

    Example:
        >>> from ppframe.schedule import Action
        >>> spans = [(0, "0F0", 0, 1), (0, "0BW0", 4, 6), (1, "1F0", 1, 2), (1, "1BW0", 2, 4)]
        >>> timeline = [TimelineEntry(r, Action.parse(a), s, e) for r, a, s, e in spans]
        >>> print(draw_terminal(timeline, width=60))
        rank 0 │0F0 ············0BW0    │
        rank 1 │····1F0 1BW0    ········│
        F forward, BW backward, · idle, one column = 0.25
    """
    if width < MINIMUM_WIDTH:
        raise ConfigError(f"drawing width must be at least {MINIMUM_WIDTH}, but is {width}.")
    canvas = _Canvas.of(timeline, markup=markup)
    if not canvas.span:
        return "Nothing to draw: no action takes any time."
    room = width - canvas.margin
    fitting = (level for level in range(LEVELS) if canvas.columns(level) <= room)
    level = next(fitting, LEVELS - 2)
    if level == LEVELS - 1:
        canvas = canvas.stretched(max(1, int(room / (canvas.span * canvas.scales[level]))))
    columns = min(room, canvas.columns(level))
    lines = list(canvas.lines(level, columns))
    has_small = any(letter.islower() for line in lines for letter in line.partition("│")[2])
    notes = (*canvas.labels.legend(has_small=has_small), *canvas.notes(level, columns))
    return "\n".join((*lines, *_wrapped(notes, width)))


def drawing_width(timeline: Timeline, *, markup: bool = False) -> int:
    """Columns in which `draw_terminal` shows the whole, with a letter per action at least."""
    canvas = _Canvas.of(timeline, markup=markup)
    if not canvas.span:
        return MINIMUM_WIDTH
    return max(MINIMUM_WIDTH, canvas.margin + canvas.columns(LEVELS - 1))


@final
@dataclass(frozen=True, slots=True)
class _Canvas:
    """Compute entries of each rank in the order of their starts, and how to draw them.

    Args:
        rows: for each rank its entries.
        labels: texts of the cells.
        scales: for each level of detail the columns per unit of time.
        start: time of the first column.
        end: time of the last.
    """

    rows: tuple[tuple[TimelineEntry, ...], ...]
    labels: Labels
    scales: tuple[float, ...]
    start: float
    end: float

    @classmethod
    def of(cls, timeline: Timeline, *, markup: bool) -> _Canvas:
        entries = sorted((e for e in timeline if e.is_compute), key=attrgetter("start"))
        ranks = 1 + max((entry.rank for entry in entries), default=-1)
        rows: list[list[TimelineEntry]] = [[] for _ in range(ranks)]
        for entry in entries:
            rows[entry.rank].append(entry)
        durations = sorted(entry.duration for entry in entries if entry.duration)
        # The shortest quarter doesn't count: one tiny action would stretch the whole drawing.
        typical = durations[len(durations) // 4] if durations else 1.0
        samples = _samples(entries, typical)
        labels = Labels.of(Looks.of(entries), samples, markup=markup)
        counted = [entry for entry in samples if entry.duration >= typical]
        scales = (
            max((labels.need(entry, level) / entry.duration for entry in counted), default=1.0)
            for level in range(LEVELS)
        )
        return cls(
            rows=tuple(map(tuple, rows)),
            labels=labels,
            scales=tuple(scales),
            start=min((entry.start for entry in entries), default=0.0),
            end=max((entry.end for entry in entries), default=0.0),
        )

    @property
    def span(self) -> float:
        return self.end - self.start

    @property
    def margin(self) -> int:
        """Columns beside the cells: the names of the ranks and the two borders."""
        return len(self._name(len(self.rows) - 1)) + len("││")

    def columns(self, level: int) -> int:
        """Columns that the whole takes at a level of detail."""
        return self._column(self.end, level)

    def stretched(self, factor: int) -> _Canvas:
        """The same with so many columns for each one."""
        return replace(self, scales=tuple(scale * factor for scale in self.scales))

    def lines(self, level: int, columns: int) -> Iterator[str]:
        """A line per rank."""
        border = "…" if columns < self.columns(level) else "│"
        for rank, row in enumerate(self.rows):
            yield f"{self._name(rank)}│{''.join(self._cells(row, level, columns))}{border}"

    def notes(self, level: int, columns: int) -> Iterator[tuple[str, str]]:
        """What to know about the drawing, each plain and as it is to be printed."""
        yield (f"{IDLE} idle",) * 2
        yield (f"one column = {1 / self.scales[level]:.3g}",) * 2
        if columns < self.columns(level):
            yield (f"cut at {columns / self.scales[level]:.4g} of {self.span:.4g}",) * 2
            yield (f"the whole needs {self.margin + self.columns(LEVELS - 1)} columns",) * 2
        shown = (e for row in self.rows for e in self._begun(row, level, columns))
        hidden = sum(self._column(e.start, level) == self._column(e.end, level) for e in shown)
        if hidden:
            yield (f"{hidden} actions too short to show",) * 2

    def _cells(self, row: Sequence[TimelineEntry], level: int, columns: int) -> Iterator[str]:
        position = 0
        for entry in self._begun(row, level, columns):
            first = max(position, self._column(entry.start, level))
            last = min(columns, self._column(entry.end, level))
            if first >= last:
                continue
            yield IDLE * (first - position)
            text = self.labels.text(entry, last - first, level)
            yield f"[{self.labels.style(entry)}]{text}[/]" if self.labels.markup else text
            position = last
        yield IDLE * (columns - position)

    def _begun(
        self, row: Sequence[TimelineEntry], level: int, columns: int
    ) -> Iterator[TimelineEntry]:
        """The entries of a row that begin before the last column ends."""
        return takewhile(lambda entry: self._column(entry.start, level) < columns, row)

    def _column(self, time: float, level: int) -> int:
        """The column nearest to a time; halves go up, whatever the last bit says."""
        return math.floor((time - self.start) * self.scales[level] + 0.5 + 1e-9)

    def _name(self, rank: int) -> str:
        return f"rank {rank:<{len(str(len(self.rows) - 1))}} "


def _samples(entries: Iterable[TimelineEntry], typical: float) -> Collection[TimelineEntry]:
    """An entry of each look: rank, stages, kinds, and digits of the microbatches.

    It is the shortest that takes the typical time or more, where there is one.
    """
    samples: dict[tuple[object, ...], TimelineEntry] = {}
    for entry in entries:
        look = (entry.rank, *map(_look, parts(entry.action)))
        known = samples.setdefault(look, entry)
        if known.duration < typical or typical <= entry.duration < known.duration:
            samples[look] = entry
    return samples.values()


def _look(part: Action) -> tuple[object, ...]:
    return part.stage, part.kind, len(str(microbatch_of(part)))


def _wrapped(notes: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Notes joined by commas, in lines that stay within a width when printed."""
    line, used = "", 0
    for plain, shown in notes:
        if used and used + len(plain) + len(", ,") > width:
            yield line + ","
            line, used = "", 0
        line += (", " if used else "") + shown
        used += (2 if used else 0) + len(plain)
    yield line
