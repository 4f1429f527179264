"""Timelines as one HTML page: the SVG drawing with zoom, links between actions, and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from importlib.resources import files
from typing import Final

from ppframe.schedule.bulk import paused_collection
from ppframe.simulator.figures import rank_figures, step_figures
from ppframe.simulator.picture import DrawingOptions, Drawn, Picture
from ppframe.simulator.report import SimulationReport
from ppframe.simulator.svg import SvgDrawing
from ppframe.simulator.timeline import Timeline

_HINT: Final = (
    "Click an action: what it needs and what needs it. Hover over one for its times. "
    "Ctrl and wheel, or + and -, zoom; drag or scroll to move; arrow keys go along a rank."
)


def draw_html(
    drawn: Drawn,
    *,
    title: str = "",
    unit: str = "",
    measured: Timeline | None = None,
    options: DrawingOptions | None = None,
) -> str:
    """The drawing of `draw_svg` as a page to explore, and the figures in tables.

    The page is complete in itself: it loads nothing, and works from a file. It zooms along the time
    axis, and switches memory, transfers, the critical path and the measured lines on and off. A
    click on an action draws arrows from what it needs and to what needs it. Without JavaScript the
    drawing and the tables are there as they are.

    Args:
        drawn: a timeline with entries in any order, or the report of a simulation.
        title: what stands above it, such as the name of the schedule.
        unit: unit of time, such as `s` or `forwards`, as printed.
        measured: the same actions as they ran, in the same unit; it is moved to the same start.
        options: the part that is shown, its size, and cost for memory in bytes.

    Returns:
        an HTML document that is well-formed XML as well.

    Example:
        >>> from ppframe.schedule import build_schedule
        >>> from ppframe.simulator import simulate
        >>> page = draw_html(simulate(build_schedule("1f1b", 2, 3)), title="1f1b")
        >>> page.startswith("<!DOCTYPE html>"), "http" in page
        (True, False)
    """
    options = options or DrawingOptions()
    with paused_collection():
        picture = Picture.of(drawn, measured, options)
        drawing = SvgDrawing(picture, options, title=title, unit=unit)
        svg = drawing.document(transfers=options.transfers, is_alone=False)
        needs = json.dumps(picture.needs(), separators=(",", ":"))
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<title>{escape(title or 'timeline')}</title>",
        f"<style>{_file('viewer.css')}</style></head><body>",
        *_controls(picture, transfers=options.transfers),
        f'<div id="view">{svg}</div>',
        f'<div id="detail" data-hint="{escape(_HINT)}">{escape(_HINT)}</div>',
        f'<div class="figures">{"".join(_tables(picture, unit))}</div>',
        f'<script type="application/json" id="needs">{needs}</script>',
        f"<script>//<![CDATA[\n{_file('viewer.js')}//]]></script>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _file(name: str) -> str:
    return files("ppframe.simulator").joinpath(name).read_text(encoding="utf-8")


def _controls(picture: Picture, *, transfers: bool) -> Iterator[str]:
    yield '<div class="bar"><span>'
    for name, text, about in (
        ("in", "+", "zoom in"),
        ("out", "−", "zoom out"),
        ("fit", "fit", "the whole in sight"),
        ("one", "1:1", "as drawn"),
    ):
        yield f'<button id="zoom-{name}" type="button" title="{about}">{text}</button> '
    yield "</span>"
    has_memory = any(row.curve for row in picture.rows)
    switches = [("memory", "memory", True)] * has_memory
    switches += [("transfers", "transfers", transfers), ("critical", "critical path", False)]
    if picture.measured is not None:
        switches += [("predicted", "predicted", True), ("measured", "measured", True)]
    for name, text, is_on in switches:
        checked = ' checked="checked"' if is_on else ""
        yield f'<label><input type="checkbox" id="show-{name}"{checked}/> {text}</label>'
    yield "</div>"


def _tables(picture: Picture, unit: str) -> Iterator[str]:
    reports = {"predicted": picture.report}
    if picture.measured is not None:
        reports["measured"] = picture.measured
    yield _table("step", ("figure", *reports), _compared(reports, unit))
    for name, report in reports.items():
        rows = list(rank_figures(report, unit))
        caption = "ranks" if len(reports) == 1 else f"ranks, {name}"
        head = tuple(rows[0])
        yield _table(caption, head, (tuple(row.values()) for row in rows))


def _compared(reports: Mapping[str, SimulationReport], unit: str) -> Iterator[tuple[str, ...]]:
    columns = [dict(step_figures(report, unit)) for report in reports.values()]
    for name in columns[0]:
        yield (name, *(column.get(name, "") for column in columns))


def _table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )
