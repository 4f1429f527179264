"""Timelines as SVG: a row per rank, a box per computation, memory below, time to the right."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final, final

from ppframe.schedule.bulk import paused_collection
from ppframe.simulator.boxes import LANE, BoxWriter
from ppframe.simulator.lanes import LaneWriter
from ppframe.simulator.legend import legend
from ppframe.simulator.palette import MEANINGS, ink, shade
from ppframe.simulator.picture import Box, DrawingOptions, Drawn, Picture
from ppframe.simulator.report import SimulationReport
from ppframe.simulator.scale import Scale
from ppframe.simulator.texts import SECOND, clock_text, number, time_text
from ppframe.simulator.timeline import Timeline

_GAP: Final = 3
_BETWEEN: Final = 13
_NAMES: Final = 110
_FIRST_LINE: Final = 43
_LINE: Final = 15
_AXIS: Final = 38
_RIGHT: Final = 26
_MIN_WIDTH: Final = 720


def draw_svg(
    drawn: Drawn,
    *,
    title: str = "",
    unit: str = "",
    measured: Timeline | None = None,
    options: DrawingOptions | None = None,
) -> str:
    """A drawing that stands for itself: rows, time axis, memory curves, figures and a legend.

    Colours tell the kinds apart, shades the chunks, numbers the microbatches; stripes mark the
    second of two chains. An overlapped pair is one box with two halves. What a rank doesn't compute
    in is hatched. Below each rank stands its memory, with the peak marked. With a measured timeline
    a second line of boxes stands below the first, and bars say how much later each action ended.

    Args:
        drawn: a timeline with entries in any order, or the report of a simulation.
        title: what stands above it, such as the name of the schedule.
        unit: unit of time, such as `s` or `forwards`, as printed.
        measured: the same actions as they ran, in the same unit; it is moved to the same start.
        options: the part that is shown, its size, and cost for memory in bytes.

    Returns:
        an SVG document. Each computation is a group of class `box` with a `title` to hover over,
        and `data-action`, `data-start` and `data-end`.

    Example:
        >>> from ppframe.schedule import build_schedule
        >>> from ppframe.simulator import simulate
        >>> text = draw_svg(simulate(build_schedule("1f1b", 2, 3)), title="1f1b")
        >>> text.startswith("<svg"), text.count('class="box')
        (True, 12)
    """
    options = options or DrawingOptions()
    with paused_collection():
        picture = Picture.of(drawn, measured, options)
        drawing = SvgDrawing(picture, options, title=title, unit=unit)
        return drawing.document(transfers=options.transfers, is_alone=True)


@final
class SvgDrawing:
    """The SVG document of one picture.

    Args:
        picture: what is shown.
        options: how large, and a note.
        title: what stands above it.
        unit: unit of time.
    """

    def __init__(self, picture: Picture, options: DrawingOptions, *, title: str, unit: str) -> None:
        self._picture = picture
        self._scale = scale = Scale.of(picture, options.max_width)
        self._title = title or "timeline"
        self._unit = unit
        self._head = list(self._lines(options.note))
        self._rows_at = _FIRST_LINE + _LINE * len(self._head) + 8
        writer = LaneWriter.of(BoxWriter(picture, scale, unit))
        self._rows = [writer.lanes(row) for row in picture.rows]
        self._row_height = sum(lane.height + _GAP for lane in self._rows[0]) - _GAP + _BETWEEN
        self._foot = self._rows_at + self._row_height * len(self._rows)

    def document(self, *, transfers: bool, is_alone: bool) -> str:
        """The SVG element.

        Args:
            transfers: draw an arrow for each hop between two ranks.
            is_alone: whether it is a file of its own, not part of a page.
        """
        width = max(_NAMES + self._scale.width + _RIGHT, _MIN_WIDTH)
        room = width - _NAMES - _RIGHT
        key, key_height = legend(self._picture, _NAMES, self._foot + _AXIS, room)
        height = self._foot + _AXIS + key_height
        namespace = 'xmlns="http://www.w3.org/2000/svg" ' if is_alone else ""
        size = f"{number(width)} {number(height)}"
        lines = [
            f'<svg {namespace}class="drawing" width="{number(width)}" height="{number(height)}" '
            f'viewBox="0 0 {size}" role="img" style="{_FONT}" {self._measures()}>',
            f"<title>{escape(self._title)}</title>",
            f"<style>{self._style()}</style>{_DEFINITIONS}",
            '<rect class="page" width="100%" height="100%"/>',
            *self._headline(),
            f'<g class="plot" transform="translate({_NAMES} 0)">',
            *self._grid(),
            *self._lanes(),
            *(self._arrows() if transfers else ()),
            "</g>",
            *self._axis(),
            *self._names(),
            *key,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"

    def _measures(self) -> str:
        """What a viewer needs to lay the drawing out anew."""
        values = {
            "start": f"{self._scale.start:.9g}",
            "per-unit": f"{self._scale.per_unit:.9g}",
            "width": number(self._scale.width),
            "names": _NAMES,
            "top": self._rows_at,
            "gap": _GAP,
            "between": _BETWEEN,
            "right": _RIGHT,
            "second": int(self._unit == SECOND),
        }
        return " ".join(f'data-{name}="{value}"' for name, value in values.items())

    def _style(self) -> str:
        count = self._picture.looks.count
        shades = (
            (f".{kind}{look}", shade(kind, look, count))
            for kind in MEANINGS
            for look in range(count)
        )
        rules = (f"{name}{{fill:{fill}}}text{name}{{fill:{ink(fill)}}}" for name, fill in shades)
        return _STYLE + "".join(rules)

    def _headline(self) -> Iterator[str]:
        yield f'<g class="head"><text class="title" x="12" y="25">{escape(self._title)}</text>'
        for line, (look, text) in enumerate(self._head):
            y = _FIRST_LINE + _LINE * line
            yield f'<text class="{look}" x="12" y="{y}">{escape(text)}</text>'
        yield "</g>"

    def _lines(self, note: str) -> Iterator[tuple[str, str]]:
        """What stands below the title, each line with its class."""
        picture = self._picture
        shape = (
            f"{_counted(len(picture.rows), 'rank')}, {_counted(picture.looks.chunks, 'chunk')} "
            f"each, {_counted(picture.looks.num_microbatches, 'microbatch', 'es')}"
        )
        if picture.measured is None:
            yield "sub", f"{shape}  ·  {self._figures(picture.report)}"
        else:
            yield "sub", f"{shape}  ·  predicted {self._figures(picture.report)}"
            yield "sub", f"measured {self._figures(picture.measured)}"
        for text in filter(None, (self._cut(), *note.split("\n"))):
            yield "note", text

    def _figures(self, report: SimulationReport) -> str:
        figures = (
            f"makespan {time_text(report.makespan, self._unit)}",
            f"bubble {report.bubble_fraction:.1%}",
            f"span bubble {report.span_bubble:.1%}",
            f"peak in flight {max(report.peak_in_flight)}",
        )
        return "  ·  ".join(figures)

    def _cut(self) -> str:
        """What is left out, if anything is."""
        picture = self._picture
        if not picture.num_hidden:
            return ""
        shown = sum(1 for _ in picture.boxes)
        first, last = picture.whole
        return (
            f"Part of the whole: time {clock_text(picture.start, self._unit)} to "
            f"{clock_text(picture.end, self._unit)} of {clock_text(first, self._unit)} to "
            f"{time_text(last, self._unit)}, {shown:,} of "
            f"{shown + picture.num_hidden:,} actions. A window shows another part."
        )

    def _grid(self) -> Iterator[str]:
        yield '<g class="grid">'
        for time in self._scale.ticks():
            x = number(self._scale.x(time))
            yield f'<path d="M{x} {self._rows_at - 4}V{number(self._foot)}"/>'
        yield "</g>"

    def _axis(self) -> Iterator[str]:
        yield f'<g class="axis" transform="translate({_NAMES} {number(self._foot)})">'
        yield f'<path d="M0 0h{number(self._scale.width)}"/>'
        for time in self._scale.ticks():
            x = number(self._scale.x(time))
            yield f'<path d="M{x} 0v4"/><text x="{x}" y="16">{clock_text(time, self._unit)}</text>'
        yield "</g>"

    def _lanes(self) -> Iterator[str]:
        for rank, lanes in enumerate(self._rows):
            yield f'<g class="row" data-rank="{rank}" transform="translate(0 {self._top(rank)})">'
            y = 0.0
            for lane in lanes:
                yield f'<g class="lane {lane.name}" data-height="{number(lane.height)}" '
                yield f'transform="translate(0 {number(y)})">'
                yield from lane.lines
                yield "</g>"
                y += lane.height + _GAP
            yield "</g>"

    def _names(self) -> Iterator[str]:
        place = f'width="{_NAMES - 12}" height="100%" y="{self._rows_at - 4}"'
        yield f'<g class="names"><rect class="page" {place}/>'
        for rank, lanes in enumerate(self._rows):
            yield f'<g class="tags" data-rank="{rank}" transform="translate(0 {self._top(rank)})">'
            y = 0.0
            for lane in lanes:
                yield f'<g class="tag {lane.name}" transform="translate(12 {number(y)})">'
                for look, text, at in lane.tags:
                    yield f'<text class="{look}" y="{number(at)}">{text}</text>'
                yield "</g>"
                y += lane.height + _GAP
            yield "</g>"
        label = escape(f"time in {self._unit}" if self._unit not in ("", SECOND) else "time")
        place = f"translate(12 {number(self._foot)})"
        yield f'<g class="tag axis-name" transform="{place}"><text class="small" y="16">{label}'
        yield "</text></g></g>"

    def _top(self, rank: int) -> str:
        return number(self._y(rank))

    def _y(self, rank: int) -> float:
        return self._rows_at + self._row_height * rank

    def _arrows(self) -> Iterator[str]:
        """A thin arrow for each hop between two ranks of the timeline."""
        boxes = list(self._picture.boxes)
        yield '<g class="arrows">'
        for box, needs in zip(boxes, self._picture.needs(), strict=True):
            for sender in (boxes[need] for need in needs):
                if sender.entry.rank != box.entry.rank:
                    yield self._arrow(sender, box)
        yield "</g>"

    def _arrow(self, sender: Box, receiver: Box) -> str:
        down = sender.entry.rank < receiver.entry.rank
        start = self._y(sender.entry.rank) + (LANE if down else 0)
        end = self._y(receiver.entry.rank) + (0 if down else LANE)
        first = f"M{number(self._scale.x(sender.entry.end))} {number(start)}"
        last = f"L{number(self._scale.x(receiver.entry.start))} {number(end)}"
        return f'<path class="hop" d="{first}{last}"/>'


def _counted(count: int, what: str, ending: str = "s") -> str:
    return f"{count} {what}{'' if count == 1 else ending}"


_FONT: Final = "font:11px system-ui,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif"
_STYLE: Final = (
    ".page{fill:#fff}text{fill:#1b1f24}.title{font-size:18px;font-weight:600}"
    ".sub{font-size:12px;fill:#444c56}.note{fill:#9a3412}.rank{font-size:12px;font-weight:600}"
    ".small,.axis text,.peak{font-size:10px;fill:#57606a}.axis text{text-anchor:middle}"
    ".grid path{stroke:#d0d7de;vector-effect:non-scaling-stroke}.axis path{stroke:#57606a}"
    ".idle{fill:url(#idle)}.box rect,.swatch rect{stroke:#fff;vector-effect:non-scaling-stroke}"
    ".box .pair,.pair{fill:none;stroke:#1b1f24;stroke-width:1.5}.chain{fill:url(#chain)}"
    ".box:hover rect{stroke:#1b1f24}.n{text-anchor:middle;font-weight:500;pointer-events:none}"
    ".band{stroke:#000;stroke-opacity:.4;stroke-width:2.5;pointer-events:none}"
    ".area{fill:#8c959f;fill-opacity:.35;stroke:#57606a;vector-effect:non-scaling-stroke}"
    ".mark{fill:#1b1f24}.zero{stroke:#57606a}.later{fill:#8a3f68}.earlier{fill:#8c959f}"
    ".hop{fill:none;stroke:#1b1f24;stroke-opacity:.55;marker-end:url(#tip)}"
)
_DEFINITIONS: Final = (
    '<defs><pattern id="idle" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#f6f8fa"/>'
    '<path d="M0 0v6" stroke="#d8dee4" stroke-width="2"/></pattern>'
    '<pattern id="chain" width="7" height="7" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(-45)"><path d="M0 0v7" stroke="#fff" stroke-opacity=".6" '
    'stroke-width="3"/></pattern>'
    '<marker id="tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" '
    'orient="auto"><path d="M0 0L6 3L0 6z" fill="#1b1f24"/></marker></defs>'
)
