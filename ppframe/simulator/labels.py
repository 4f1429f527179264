"""What a cell of the terminal drawing says, at each width, and in which colour."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import final

from ppframe.schedule import Overlap
from ppframe.schedule.action import parts
from ppframe.simulator.timeline import TimelineEntry, microbatch_of

LEVELS = 3
"""Levels of detail: whole action, kind and microbatch, one letter."""

# Light to dark by chunk, black on top is readable on each. Blue, orange, yellow, purple and grey
# stay apart for colour-blind readers; the letters say the same.
_SHADES = {
    "F": ("#9ecae1", "#4292c6", "#c6dbef", "#6baed6"),
    "BW": ("#fdae6b", "#e6740d", "#fdd0a2", "#f58634"),
    "B": ("#fff0a0", "#d9b400", "#fff7cc", "#efd23c"),
    "W": ("#dadaeb", "#9e9ac8", "#efedf5", "#bcbddc"),
    "X": ("#d9d9d9", "#a6a6a6", "#efefef", "#bdbdbd"),
}
_MEANING = {
    "F": "forward",
    "BW": "backward",
    "B": "backward for the input",
    "W": "backward for the weights",
    "X": "overlapped pair",
}


@final
@dataclass(frozen=True, slots=True)
class Labels:
    """Texts and colours for the cells of one drawing.

    Args:
        chunks: for each rank, its stages in ascending order: their positions are the chunks.
        kinds: kinds that occur, `X` for an overlapped pair, in the order of the legend.
        has_wide_numbers: whether a microbatch number may have two digits or more.
        markup: whether colours tell kinds and chunks apart.
    """

    chunks: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]
    has_wide_numbers: bool
    markup: bool

    @classmethod
    def of(cls, entries: Collection[TimelineEntry], *, ranks: int, markup: bool) -> Labels:
        """Labels for compute entries, of which there is one at least for each kind and stage."""
        stages: list[set[int]] = [set() for _ in range(ranks)]
        for entry in entries:
            stages[entry.rank].update(part.stage for part in parts(entry.action))
        present = {_kind(entry) for entry in entries}
        microbatches = (microbatch_of(part) or 0 for e in entries for part in parts(e.action))
        return cls(
            chunks=tuple(tuple(sorted(row)) for row in stages),
            kinds=tuple(kind for kind in _MEANING if kind in present),
            has_wide_numbers=max(microbatches, default=0) > 9,
            markup=markup,
        )

    def need(self, entry: TimelineEntry, level: int) -> int:
        """Columns that the entry's text takes at a level of detail, from 0 for the whole action."""
        return 1 if level == LEVELS - 1 else self._texts(entry)[level][1]

    def text(self, entry: TimelineEntry, columns: int, level: int) -> str:
        """The longest text of a level or below that fits into columns, filled up with blanks."""
        texts = self._texts(entry)[level:]
        return next(text for text, need in texts if need <= columns).ljust(columns)

    def style(self, entry: TimelineEntry) -> str:
        """Style of the cell, in the words of rich."""
        shades = _SHADES[_kind(entry)]
        return f"black on {shades[self._chunk(entry) % len(shades)]}"

    def legend(self) -> Iterator[tuple[str, str]]:
        """Items of the legend, each plain and as it is to be printed."""
        for kind in self.kinds:
            colour = f"black on {_SHADES[kind][0]}"
            shown = f"[{colour}]{kind}[/]" if self.markup else kind
            yield f"{kind} {_MEANING[kind]}", f"{shown} {_MEANING[kind]}"
        most = max(map(len, self.chunks), default=0)
        if most > 1 and self.markup:
            yield ("shades: chunks",) * 2
        elif most > 1:
            yield (f"lower case: {'chunk 1' if most == 2 else 'odd chunks'}",) * 2

    def _texts(self, entry: TimelineEntry) -> list[tuple[str, int]]:
        """Texts of an entry and the columns each needs, from the longest to one letter."""
        kind, number, action = _kind(entry), _numbers(entry), str(entry.action)
        whole, letter = (action, len(action) + 1), (self._cased(entry, kind[0]), 1)
        if self.markup:  # colours tell the kind
            return [whole, (number, len(number) + self.has_wide_numbers), letter]
        short, shorter = self._cased(entry, kind) + number, letter[0] + number
        chunks = len(max(self.chunks, key=len))
        if chunks > 2:  # only the stage in the whole action tells them all apart
            return [whole, whole, (shorter, len(shorter)), letter]
        texts = [whole, (short, len(short)), (shorter, len(shorter)), letter]
        # Of one chunk per rank a bare digit can only be a forward: backwards show a letter.
        if kind == "F" and not self.has_wide_numbers and chunks == 1:
            texts.insert(-1, (number, 1))
        return texts

    def _cased(self, entry: TimelineEntry, letters: str) -> str:
        return letters.lower() if self._chunk(entry) % 2 and not self.markup else letters

    def _chunk(self, entry: TimelineEntry) -> int:
        return self.chunks[entry.rank].index(parts(entry.action)[0].stage)


def _kind(entry: TimelineEntry) -> str:
    return "X" if isinstance(entry.action, Overlap) else entry.action.kind.value


def _numbers(entry: TimelineEntry) -> str:
    return ";".join(str(microbatch_of(part)) for part in parts(entry.action))
