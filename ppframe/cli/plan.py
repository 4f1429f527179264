"""What `mode=plan` prints."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ppframe.metrics import Plan
from ppframe.metrics.tables import bytes_text, data_line, plan_lines, plan_table, time_text
from ppframe.schedule import LoweredSchedule, Schedule
from ppframe.simulator import SimulationReport, draw_terminal

_WIDTH_ELSEWHERE = 160
_NO_BYTES = "not known: needs bytes, as cost=profiled has them"


@final
@dataclass(frozen=True, slots=True)
class PlanFigures:
    """What is known of a run before it starts.

    Args:
        plan: ranks, stages and their parameters.
        report: the simulated step.
        schedule: what is computed when.
        lowered: the same with transfers; both are verified.
        cost: what was predicted with, in words.
    """

    plan: Plan
    report: SimulationReport
    schedule: Schedule
    lowered: LoweredSchedule
    cost: str


def print_plan(figures: PlanFigures) -> None:
    """Print stages and ranks, the drawing, and the figures of the simulated step."""
    is_terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if is_terminal else _WIDTH_ELSEWHERE)
    plan = figures.plan
    if is_terminal:
        console.print(plan_table(plan))
        console.print(Text(data_line(plan)))
    else:
        for line in plan_lines(plan):
            console.print(Text(line))
    drawing = draw_terminal(
        figures.report.timeline, width=max(30, console.width), markup=is_terminal
    )
    console.print(drawing, markup=is_terminal, highlight=False)
    console.print(_figures_table(figures) if is_terminal else Text("\n".join(_lines(figures))))


def _figures_table(figures: PlanFigures) -> Table:
    table = Table(title="one step", title_justify="left", show_header=False)
    for name, value in _rows(figures):
        table.add_row(name, value)
    return table


def _lines(figures: PlanFigures) -> list[str]:
    return [f"{name}: {value}" for name, value in _rows(figures)]


def _rows(figures: PlanFigures) -> list[tuple[str, str]]:
    """Name and value of each figure."""
    report, unit = figures.report, figures.plan.time_unit
    peaks = map(bytes_text, figures.plan.peak_bytes)
    computed = sum(len(row) for row in figures.schedule.actions)
    lowered = sum(len(row) for row in figures.lowered.actions)
    return [
        ("verified", f"{computed} actions, {lowered} with transfers; no deadlock"),
        ("cost", figures.cost),
        ("makespan", time_text(report.makespan, unit)),
        ("bubble fraction", f"{report.bubble_fraction:.4f}"),
        ("span bubble", f"{report.span_bubble:.4f}"),
        ("idle by rank", ", ".join(time_text(idle, unit) for idle in report.idle)),
        ("peak in flight by rank", " ".join(map(str, report.peak_in_flight))),
        ("peak activation by rank", " ".join(f"{peak:g}" for peak in report.peak_activation)),
        ("peak memory by rank", ", ".join(peaks) or _NO_BYTES),
    ]
