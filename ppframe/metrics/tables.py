"""Plan and summary for people: rich tables for a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ppframe.metrics.base import Plan, StagePlan
from ppframe.simulator import draw_terminal, drawing_width
from ppframe.simulator.texts import bytes_text as bytes_text
from ppframe.simulator.texts import time_text as time_text

MAX_DRAWN_RANKS = 32


def plan_table(plan: Plan) -> RenderableType:
    """The plan as a headline over a table with a row for each rank."""
    table = Table()
    columns = ("rank", "device", "stages", "parameters", "weights+grads", "in flight at most")
    for column in columns + ("peak memory",) * bool(plan.peak_bytes):
        table.add_column(column, justify="left" if column in ("device", "stages") else "right")
    for rank, device in enumerate(plan.devices):
        stages = plan.stages_of(rank)
        table.add_row(
            str(rank),
            device,
            "\n".join(_stage_text(stage) for stage in stages),
            "\n".join(f"{stage.num_parameters:,}" for stage in stages),
            bytes_text(plan.state_bytes[rank]),
            str(plan.peak_in_flight[rank]),
            *(bytes_text(peak) for peak in plan.peak_bytes[rank : rank + 1]),
        )
    return Group(Text(headline(plan), style="bold"), table)


def plan_lines(plan: Plan) -> list[str]:
    """The plan as one line for the whole and one for each rank."""
    lines = [headline(plan)]
    for rank, device in enumerate(plan.devices):
        stages = plan.stages_of(rank)
        lines.append(
            f"rank {rank} ({device}): "
            + "; ".join(f"{_stage_text(stage)}, {stage.num_parameters:,}" for stage in stages)
            + f" parameters; weights and gradients {bytes_text(plan.state_bytes[rank])}, "
            f"at most {plan.peak_in_flight[rank]} in flight"
            + "".join(f", peak {bytes_text(p)}" for p in plan.peak_bytes[rank : rank + 1])
        )
    if plan.data:
        lines.append(data_line(plan))
    return lines


def headline(plan: Plan) -> str:
    """Schedule, sizes and what is predicted in one line."""
    num_parameters = sum(stage.num_parameters for stage in plan.stages)
    return (
        f"{plan.schedule}: {plan.ranks} ranks, {len(plan.stages)} stages, "
        f"{plan.num_microbatches} microbatches of a batch of {plan.batch_size}, "
        f"{num_parameters:,} parameters, predicted bubble {plan.bubble_fraction:.1%}"
        + ("" if plan.span_bubble is None else f", span bubble {plan.span_bubble:.1%}")
        + ("" if plan.makespan is None else f", step {time_text(plan.makespan, plan.time_unit)}")
    )


def data_line(plan: Plan) -> str:
    """The data, with the entropy that the loss should fall below."""
    if plan.unigram_entropy is None:
        return f"data: {plan.data}"
    return f"data: {plan.data}; unigram entropy {plan.unigram_entropy:.3f} nats"


def plan_drawing(plan: Plan, width: int) -> str | None:
    """The schedule over time as rich markup; None where the whole doesn't fit a screen."""
    if plan.ranks > MAX_DRAWN_RANKS or drawing_width(plan.timeline) > width:
        return None
    return draw_terminal(plan.timeline, width=width, markup=True)


def summary_table(summary: Mapping[str, Any], *, good: bool = True) -> Table:
    """The summary as a table of two columns; its title is red where the run went wrong."""
    style = "bold" if good else "bold red"
    table = Table(title="summary", title_justify="left", title_style=style, show_header=False)
    for key, value in _shown(summary).items():
        table.add_row(key, Text(value))
    return table


def summary_line(summary: Mapping[str, Any]) -> str:
    """The summary in one line."""
    return "summary: " + ", ".join(f"{key} {value}" for key, value in _shown(summary).items())


def metrics_line(metrics: Mapping[str, float], step: int, num_steps: int) -> str:
    """The numbers of a step in one line: those that people follow."""
    parts = [f"step {step}/{num_steps}" if num_steps else f"step {step}"]
    parts += [f"{name} {text}" if name else text for name, text in readings(metrics)]
    return "  ".join(parts)


def readings(metrics: Mapping[str, float]) -> list[tuple[str, str]]:
    """Name and text of the numbers that people follow, where present."""
    forms = {
        "train/loss": ("loss", "{:.4f}"),
        "val/loss": ("val loss", "{:.4f}"),
        "train/lr": ("lr", "{:.2e}"),
        "train/grad_norm": ("grad norm", "{:.2f}"),
    }
    found = [
        (name, form.format(metrics[key])) for key, (name, form) in forms.items() if key in metrics
    ]
    if "throughput/tokens_per_s" in metrics:
        found.append(("", f"{count_text(metrics['throughput/tokens_per_s'])} tokens/s"))
    if "time/step_s" in metrics:
        found.append(("", f"{metrics['time/step_s']:.3f} s/step"))
    return found


def count_text(count: float) -> str:
    """A count in three or four characters and its unit: `532`, `12.3k`, `4.5M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return f"{count:.0f}"


def duration_text(seconds: float) -> str:
    """A duration as `m:ss` or `h:mm:ss`."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _stage_text(stage: StagePlan) -> str:
    names = stage.modules
    shown = names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}" if names else "nothing"
    return f"stage {stage.stage} ({shown})"


def _shown(summary: Mapping[str, Any]) -> dict[str, str]:
    return {key: _value_text(value) for key, value in summary.items() if value not in (None, "")}


def _value_text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
