"""Drawings and traces in the run's folder: the step as planned, and beside it as it ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ppframe.runtime import ActionTime
from ppframe.schedule import Schedule
from ppframe.schedule.cost import Cost
from ppframe.simulator import (
    DrawingOptions,
    SimulationReport,
    TimelineEntry,
    chrome_trace,
    draw_html,
    draw_svg,
    replay,
)
from ppframe.simulator.texts import SECOND, time_text
from ppframe.training.files import write_text

_MILLISECOND: Final = 1e3  # in a trace a unit without a known length is shown as 1 ms


@final
@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step before it runs.

    Args:
        schedule: what is computed when; compute-only.
        report: its simulation.
        cost: what that was simulated with.
    """

    schedule: Schedule
    report: SimulationReport
    cost: Cost

    @property
    def title(self) -> str:
        """What stands above drawings of it."""
        return self.schedule.name or "schedule without a name"


@final
@dataclass(frozen=True, slots=True)
class RanStep:
    """A step that was recorded.

    Args:
        step: its number.
        timeline: its computations in seconds, ranks side by side.
        source: `wall`, or `replayed` where ranks took turns; see `Bubble`.
    """

    step: int
    timeline: Sequence[TimelineEntry]
    source: str


def draw_plan(run_dir: Path, planned: PlannedStep) -> None:
    """Write `schedule.svg` and `schedule.html`.

    Args:
        run_dir: folder of the run.
        planned: what is drawn.
    """
    unit, options = planned.cost.time_unit, DrawingOptions(cost=planned.cost)
    for name, draw in (("schedule.svg", draw_svg), ("schedule.html", draw_html)):
        drawing = draw(planned.report, title=planned.title, unit=unit, options=options)
        write_text(run_dir / name, drawing)


def trace_plan(run_dir: Path, planned: PlannedStep) -> None:
    """Write `timeline.json` of the planned step alone."""
    scale = 1e6 if planned.cost.time_unit == SECOND else _MILLISECOND
    text = chrome_trace({"predicted": planned.report.timeline}, microseconds_per_unit=scale)
    write_text(run_dir / "timeline.json", text)


def draw_ran(
    run_dir: Path,
    planned: PlannedStep,
    ran: RanStep,
    traces: Mapping[int, Sequence[ActionTime]],
) -> str:
    """Write `timeline.svg`, `timeline.html` and `timeline.json`: predicted above measured.

    Args:
        run_dir: folder of the run.
        planned: the step as planned.
        ran: the step as it ran.
        traces: by step, the times of its actions in seconds since it began; further processes of
            the trace.

    Returns:
        the page of `timeline.html`.
    """
    report, note = in_seconds(planned, ran)
    title = f"{planned.title}, step {ran.step}, predicted and measured"
    if ran.source == "replayed":
        note += "\nmeasured: ranks took turns; the times of their actions are put side by side"
    options = DrawingOptions(cost=planned.cost, note=note)
    picture, page = (
        draw(report, title=title, unit=SECOND, measured=ran.timeline, options=options)
        for draw in (draw_svg, draw_html)
    )
    write_text(run_dir / "timeline.svg", picture)
    write_text(run_dir / "timeline.html", page)
    timelines = {
        "predicted": report.timeline,
        f"measured, step {ran.step}": ran.timeline,
        **{f"step {step} as recorded": _entries(trace) for step, trace in traces.items()},
    }
    write_text(run_dir / "timeline.json", chrome_trace(timelines))
    return page


def in_seconds(planned: PlannedStep, ran: RanStep) -> tuple[SimulationReport, str]:
    """The planned step in seconds, and what was done to have it so.

    Where the cost is in another unit, it is scaled so that all ranks together compute for as long
    as they did: what is left to compare is the order and the waiting.

    Args:
        planned: the step as planned.
        ran: the step as it ran.
    """
    report, cost = planned.report, planned.cost
    if cost.time_unit == SECOND:
        return report, ""
    computes = [entry for entry in report.timeline if entry.is_compute]
    whole = sum(entry.duration for entry in computes)
    factor = sum(entry.duration for entry in ran.timeline) / whole if whole else 0.0
    durations = {entry.action: entry.duration * factor for entry in computes}
    hops = cost.of_stages("transfer", planned.schedule.num_stages)
    unit = time_text(factor, SECOND)
    note = f"predicted: the cost's unit of time taken as {unit}; so all compute as long as measured"
    return replay(planned.schedule, durations, transfer=[hop * factor for hop in hops]), note


def _entries(trace: Sequence[ActionTime]) -> list[TimelineEntry]:
    return [TimelineEntry(entry.rank, entry.action, entry.start_s, entry.end_s) for entry in trace]
