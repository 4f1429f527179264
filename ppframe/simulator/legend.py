"""The legend below a drawing: what its colours, shades and marks mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ppframe.schedule.action import singles_of
from ppframe.simulator.boxes import Place, filled
from ppframe.simulator.palette import MEANINGS
from ppframe.simulator.picture import Picture
from ppframe.simulator.texts import number

_LINE: Final = 22
_SWATCH: Final = 18
_LETTER: Final = 6.2


def legend(picture: Picture, x: float, y: float, room: float) -> tuple[list[str], int]:
    """Items side by side, in as many lines as they need.

    Args:
        picture: what is drawn.
        x: left end.
        y: top.
        room: width.

    Returns:
        SVG elements, and the height that they take.
    """
    lines, left, line = [], 0.0, 0
    for mark, width, text in _items(picture):
        needed = width + 6 + len(text) * _LETTER + 20
        if left and left + needed > room:
            left, line = 0.0, line + 1
        place = f"translate({number(x + left)} {number(y + line * _LINE)})"
        label = f'<text x="{number(width + 6)}" y="12">{text}</text>'
        lines.append(f'<g transform="{place}">{mark}{label}</g>')
        left += needed
    height = (line + 1) * _LINE + 4
    return [f'<g class="legend" data-height="{height}">', *lines, "</g>"], height


def _items(picture: Picture) -> Iterator[tuple[str, float, str]]:
    """Mark, its width, and what it means."""
    looks = picture.looks
    singles = [single for box in picture.boxes for single in singles_of(box.entry.action)]
    kinds = {kind.value for _, kind, _ in singles}
    for kind, meaning in MEANINGS.items():
        if kind in kinds:
            yield _swatches(kind, looks.count, looks.chunks), looks.count * _SWATCH, meaning
    if looks.chunks > 1:
        yield "", -6, f"dark to light: chunk 0 to {looks.chunks - 1}"
    if looks.chains > 1:
        yield "", -6, "striped: microbatches that go the other way"
    if any(len(list(singles_of(box.entry.action))) > 1 for box in picture.boxes):
        yield _plain("pair"), _SWATCH, "overlapped pair"
    yield _plain("idle"), _SWATCH, "idle"
    if any(row.curve for row in picture.rows):
        what = "memory in bytes" if picture.is_in_bytes else "activations in flight"
        yield _plain("area"), _SWATCH, f"{what}, same scale for all ranks"
    if picture.measured is not None:
        yield _plain("later"), _SWATCH, "ended later than predicted"
        yield _plain("earlier"), _SWATCH, "earlier"


def _swatches(kind: str, count: int, chunks: int) -> str:
    """A swatch for each look of a kind, with its bands and stripes."""
    drawn = (
        filled(kind, look, Place(look * _SWATCH, 0, _SWATCH, 16), is_striped=look >= chunks)
        for look in range(count)
    )
    return f'<g class="swatch">{"".join(drawn)}</g>'


def _plain(look: str) -> str:
    return f'<rect class="{look}" width="{_SWATCH}" height="16"/>'
