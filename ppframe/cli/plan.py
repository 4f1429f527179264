"""What `mode=plan` prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ppframe.metrics import Plan
from ppframe.metrics.tables import bytes_text, data_line, plan_lines, plan_table, time_text
from ppframe.schedule import LoweredSchedule
from ppframe.simulator import draw_terminal
from ppframe.simulator.figures import critical_path_text
from ppframe.training.drawings import PlannedStep
from ppframe.training.volume import Volume
from ppframe.training.waiting import Waiting, splits

_WIDTH_ELSEWHERE = 160
_NO_BYTES = "not known: needs bytes, as cost=profiled has them"


@final
@dataclass(frozen=True, slots=True)
class PlanFigures:
    """What is known of a run before it starts.

    Args:
        plan: ranks, stages and their parameters.
        planned: the simulated step, and what is computed when.
        lowered: the same with transfers; both are verified.
        volume: what goes from rank to rank.
        waiting: what each stage leaves for W, where the schedule has W; None where it can't be
            told.
        cost: what was predicted with, in words.
        run_dir: where the drawings are.
    """

    plan: Plan
    planned: PlannedStep
    lowered: LoweredSchedule
    volume: Volume
    waiting: Sequence[Waiting] | None
    cost: str
    run_dir: Path

    def kept(self) -> dict[str, Any]:
        """What `summary.json` and the table of a sweep keep of it.

        `peak_activation` is the highest of all ranks, in activations of a microbatch on all the
        chunks of a rank, so that schedules with other numbers of chunks can be compared.
        """
        report, chunks = self.planned.report, self.planned.schedule.chunks_per_rank
        return {
            "chunks_per_rank": chunks,
            "span_bubble": report.span_bubble,
            "makespan": report.makespan,
            "peak_in_flight": max(report.peak_in_flight),
            "peak_activation": max(report.peak_activation) / chunks,
            **({"peak_bytes": max(self.plan.peak_bytes)} if self.plan.peak_bytes else {}),
            "messages": self.volume.messages,
            "message_bytes": self.volume.num_bytes,
        }


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
        figures.planned.report.timeline, width=max(30, console.width), markup=is_terminal
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
    report, unit = figures.planned.report, figures.plan.time_unit
    peaks = map(bytes_text, figures.plan.peak_bytes)
    computed = sum(len(row) for row in figures.planned.schedule.actions)
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
        ("transfers", _volume_text(figures.volume)),
        *_split_row(figures),
        ("critical path", critical_path_text(report, unit)),
        ("drawn in", f"{figures.run_dir}: schedule.svg, schedule.html; timeline.json for Perfetto"),
    ]


def _split_row(figures: PlanFigures) -> list[tuple[str, str]]:
    """How far the stages can split their backward, where the schedule does."""
    if not splits(figures.planned.schedule):
        return []
    if figures.waiting is None:
        return [("gradients that wait for W", "not known: a module needs real numbers to run")]
    text = ", ".join(map(str, figures.waiting))
    whole = [
        str(stage)
        for stage, waiting in enumerate(figures.waiting)
        if waiting.num_trained and not waiting.num_waiting
    ]
    note = f"; B does the whole backward of stage {', '.join(whole)}" if whole else ""
    return [("gradients that wait for W", f"by stage {text}{note}")]


def _volume_text(volume: Volume) -> str:
    messages = f"{volume.messages} messages"
    if volume.num_bytes is None:
        return f"{messages}, of a size that only a run can tell"
    return f"{messages}, {bytes_text(volume.num_bytes)}"
