"""Boxes of a drawing: one for each computation, with what it says and shows when hovered over."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final, NamedTuple, final

from ppframe.schedule.action import singles_of
from ppframe.simulator.palette import MEANINGS
from ppframe.simulator.picture import Box, Picture
from ppframe.simulator.scale import Scale
from ppframe.simulator.texts import clock_text, number, time_text

LANE: Final = 28
"""Pixels of a row's boxes from top to bottom."""
BAND: Final = 2.5
"""Pixels of the bands by which kinds are told apart in grey."""
_LARGEST: Final = 12.0
_SMALLEST: Final = 6.5
_LETTER: Final = 0.62


@final
class Place(NamedTuple):
    """A rectangle of a drawing, in pixels.

    Args:
        x: left end.
        y: top.
        width: from left to right.
        height: from top to bottom.
    """

    x: float
    y: float
    width: float
    height: float

    @property
    def attributes(self) -> str:
        """Those of an SVG rectangle."""
        x, y, width, height = map(number, self)
        return f'x="{x}" y="{y}" width="{width}" height="{height}"'


@final
@dataclass(frozen=True, slots=True)
class BoxWriter:
    """Writes the boxes of a picture as SVG groups.

    Args:
        picture: what is drawn.
        scale: where times lie.
        unit: unit of time, as printed.
    """

    picture: Picture
    scale: Scale
    unit: str

    def written(self, box: Box) -> str:
        """The group of a box; an overlapped pair is one box with two halves."""
        entry, halves = box.entry, list(enumerate(singles_of(box.entry.action)))
        x, width = self.scale.extent(entry.start, entry.end)
        height = LANE / len(halves)
        drawn = []
        for half, (stage, kind, microbatch) in halves:
            look = self.picture.looks.look(entry.rank, stage, microbatch)
            place = Place(x, half * height, width, height)
            is_striped = self.picture.looks.chain(microbatch) > 0
            drawn.append(filled(kind.value, look, place, is_striped=is_striped))
            drawn.append(_label(f"{kind.value}{look}", str(microbatch), place))
        outline = f'<rect class="pair" x="{number(x)}" width="{number(width)}" height="{LANE}"/>'
        return (
            f'<g class="box{" critical" if box.is_critical else ""}" data-action="{entry.action}" '
            f'data-start="{entry.start:.9g}" data-end="{entry.end:.9g}">'
            f"<title>{escape(self._hover(box))}</title>{''.join(drawn)}"
            f"{outline if len(halves) > 1 else ''}</g>"
        )

    def _hover(self, box: Box) -> str:
        entry, looks = box.entry, self.picture.looks
        lines = [f"{entry.action} on rank {entry.rank}"]
        for stage, kind, microbatch in singles_of(entry.action):
            line = f"{MEANINGS[kind.value]} of stage {stage}, microbatch {microbatch}"
            line += f", chunk {looks.chunk(entry.rank, stage, microbatch)}" * (looks.chunks > 1)
            line += f", chain {looks.chain(microbatch)}" * (looks.chains > 1)
            lines.append(line)
        start, end = clock_text(entry.start, self.unit), clock_text(entry.end, self.unit)
        lines.append(f"start {start}, end {end}, duration {time_text(entry.duration, self.unit)}")
        if box.late:
            word = "later" if box.late > 0 else "earlier"
            lines.append(f"{time_text(abs(box.late), self.unit)} {word} than predicted")
        return "\n".join(lines)


def filled(kind: str, look: int, place: Place, *, is_striped: bool) -> str:
    """A place in the colour of a kind, with the bands that say the kind in grey.

    Args:
        kind: F, B, W or BW.
        look: number of the shade.
        place: where.
        is_striped: whether it belongs to the second chain.
    """
    stripes = f'<rect class="chain" {place.attributes}/>' if is_striped else ""
    top, bottom = place.y + BAND / 2, place.y + place.height - BAND / 2
    at = [top] * ("B" in kind) + [bottom] * ("W" in kind)
    lines = "".join(f"M{number(place.x)} {number(y)}h{number(place.width)}" for y in at)
    bands = f'<path class="band" d="{lines}"/>' if lines else ""
    return f'<rect class="{kind}{look}" {place.attributes}/>{stripes}{bands}'


def _label(look: str, text: str, place: Place) -> str:
    """The text in the middle of its place, in the size that fits; nothing where none does."""
    size = min(_LARGEST, (place.width - 1.5) / (_LETTER * len(text)))
    if size < _SMALLEST:
        return ""
    x, y = place.x + place.width / 2, place.y + place.height / 2 + size * 0.36
    return (
        f'<text class="n {look}" x="{number(x)}" y="{number(y)}" '
        f'font-size="{number(size)}">{text}</text>'
    )
