"""`timeline.json`: when each action ran, for Perfetto and Chrome's trace viewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ppframe.runtime import ActionTime
from ppframe.simulator import TimelineEntry, chrome_trace
from ppframe.training.files import write_text


def write_timeline(path: Path, traces: Mapping[int, Sequence[ActionTime]]) -> None:
    """Write recorded steps, each as a process of its own with a line for each rank.

    Args:
        path: file to write; nothing is written where no step was recorded.
        traces: by step, the times of its actions in seconds since it began.
    """
    if traces:
        write_text(path, chrome_trace({f"step {s}": _entries(t) for s, t in traces.items()}))


def _entries(trace: Sequence[ActionTime]) -> list[TimelineEntry]:
    return [TimelineEntry(entry.rank, entry.action, entry.start_s, entry.end_s) for entry in trace]
