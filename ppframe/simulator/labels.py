"""What a cell of the terminal drawing says, at each width, and in which colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from ppframe.schedule import Overlap
from ppframe.schedule.action import parts, singles_of
from ppframe.simulator.looks import Looks
from ppframe.simulator.palette import BLACK, MEANINGS, ink, shade
from ppframe.simulator.timeline import TimelineEntry, microbatch_of

LEVELS = 3
"""Levels of detail: whole action, kind and microbatch, one letter."""

_OVERLAPPED = "X"
_MEANING = {**MEANINGS, _OVERLAPPED: "overlapped pair"}
_GREYS = ("#a6a6a6", "#e3e3e3")


@final
@dataclass(frozen=True, slots=True)
class Labels:
    """Texts and colours for the cells of one drawing.

    Args:
        looks: chunk and chain of each action.
        kinds: kinds that occur, `X` for an overlapped pair, in the order of the legend.
        has_wide_numbers: whether a microbatch number may have two digits or more.
        markup: whether colours tell kinds and chunks apart.
    """

    looks: Looks
    kinds: tuple[str, ...]
    has_wide_numbers: bool
    markup: bool

    @classmethod
    def of(cls, looks: Looks, samples: Iterable[TimelineEntry], *, markup: bool) -> Labels:
        """Labels for compute entries.

        Args:
            looks: of all entries.
            samples: one entry at least for each kind.
            markup: whether colours tell kinds and chunks apart.
        """
        present = {_kind(entry) for entry in samples}
        return cls(
            looks=looks,
            kinds=tuple(kind for kind in _MEANING if kind in present),
            has_wide_numbers=looks.num_microbatches > 10,
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
        return self._style(_kind(entry), self._look(entry))

    def legend(self, *, has_small: bool) -> Iterator[tuple[str, str]]:
        """Items of the legend, each plain and as it is to be printed.

        Args:
            has_small: whether a cell without markup holds a letter in lower case.
        """
        for kind in self.kinds:
            shown = f"[{self._style(kind, 0)}]{kind}[/]" if self.markup else kind
            yield f"{kind} {_MEANING[kind]}", f"{shown} {_MEANING[kind]}"
        if self.looks.count > 1 and (self.markup or has_small):
            yield (self._note(),) * 2

    def _note(self) -> str:
        """What tells the looks apart; in upper and lower case two at a time."""
        chunks, count = self.looks.chunks, self.looks.count
        if self.markup:
            return "light: the other way" if chunks == 1 else "light: later chunks"
        if count == 2:
            return "lower case: the other way" if chunks == 1 else "lower case: chunk 1"
        return "lower case: odd chunks"

    def _texts(self, entry: TimelineEntry) -> list[tuple[str, int]]:
        """Texts of an entry and the columns each needs, from the longest to one letter."""
        kind, number, action = _kind(entry), _numbers(entry), str(entry.action)
        whole, letter = (action, len(action) + 1), (self._cased(entry, kind[0]), 1)
        if self.markup:  # colours tell the kind
            return [whole, (number, len(number) + self.has_wide_numbers), letter]
        short, shorter = self._cased(entry, kind) + number, letter[0] + number
        if self.looks.count > 2:  # only the stage in the whole action tells them all apart
            return [whole, whole, (shorter, len(shorter)), letter]
        texts = [whole, (short, len(short)), (shorter, len(shorter)), letter]
        # Of one chunk per rank a bare digit can only be a forward: backwards show a letter.
        if kind == "F" and not self.has_wide_numbers and self.looks.count == 1:
            texts.insert(-1, (number, 1))
        return texts

    def _cased(self, entry: TimelineEntry, letters: str) -> str:
        return letters.lower() if self._look(entry) % 2 and not self.markup else letters

    def _look(self, entry: TimelineEntry) -> int:
        stage, _, microbatch = next(iter(singles_of(entry.action)))
        return self.looks.look(entry.rank, stage, microbatch)

    def _style(self, kind: str, look: int) -> str:
        """Readable on the drawing's own colours, whatever those of the terminal are."""
        if kind == _OVERLAPPED:
            fill = _GREYS[look * len(_GREYS) // self.looks.count]
        else:
            fill = shade(kind, look, self.looks.count)
        return f"{'black' if ink(fill) == BLACK else 'white'} on {fill}"


def _kind(entry: TimelineEntry) -> str:
    return _OVERLAPPED if isinstance(entry.action, Overlap) else entry.action.kind.value


def _numbers(entry: TimelineEntry) -> str:
    return ";".join(str(microbatch_of(part)) for part in parts(entry.action))
