"""The figures of a simulated step as texts, for tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from ppframe.schedule.action import singles_of
from ppframe.simulator.report import SimulationReport
from ppframe.simulator.texts import amount, bytes_text, clock_text, time_text

_MOST_TURNS = 16


def step_figures(report: SimulationReport, unit: str = "") -> list[tuple[str, str]]:
    """Name and value of each figure of the whole step.

    Args:
        report: the step.
        unit: unit of time, as printed.

    Example:
        >>> from ppframe.schedule import build_schedule
        >>> from ppframe.simulator import simulate
        >>> step_figures(simulate(build_schedule("1f1b", 2, 2)))[0]
        ('makespan', '9')
    """
    figures = [
        ("makespan", time_text(report.makespan, unit)),
        ("bubble fraction", f"{report.bubble_fraction:.4f}"),
        ("span bubble", f"{report.span_bubble:.4f}"),
    ]
    if report.critical_path:
        figures.append(("critical path", critical_path_text(report, unit)))
    return figures


def critical_path_text(report: SimulationReport, unit: str = "") -> str:
    """What the longest path consists of, and the ranks that it goes through.

    Args:
        report: the step.
        unit: unit of time, as printed.

    Example:
        >>> from ppframe.schedule import build_schedule
        >>> from ppframe.simulator import simulate
        >>> critical_path_text(simulate(build_schedule("gpipe", 2, 1)))
        '2 F, 2 BW for 6, hops for 0; ranks 0 1 0'
    """
    path = report.critical_path
    kinds = Counter(kind.value for entry in path for _, kind, _ in singles_of(entry.action))
    computed = sum(entry.duration for entry in path)
    waited = max(0.0, report.makespan - computed)
    turns = [rank for rank, _ in groupby(entry.rank for entry in path)]
    shown = " ".join(map(str, turns[:_MOST_TURNS])) + " …" * (len(turns) > _MOST_TURNS)
    return (
        f"{', '.join(f'{count} {kind}' for kind, count in kinds.items())} for "
        f"{time_text(computed, unit)}, hops for {time_text(waited, unit)}; ranks {shown}"
    )


def rank_figures(report: SimulationReport, unit: str = "") -> Iterator[dict[str, str]]:
    """For each rank its figures by name; bytes only where the cost told them.

    Args:
        report: the step.
        unit: unit of time, as printed.
    """
    has_bytes = any(report.peak_bytes)
    for rank, idle in enumerate(report.idle):
        figures = {
            "rank": str(rank),
            "busy": clock_text(report.makespan - idle, unit),
            "idle": clock_text(idle, unit),
            "idle share": f"{idle / report.makespan:.1%}" if report.makespan else "",
            "peak in flight": str(report.peak_in_flight[rank]),
            "peak activation": amount(report.peak_activation[rank]),
        }
        if has_bytes:
            figures["peak bytes"] = bytes_text(report.peak_bytes[rank])
        yield figures
