"""Timelines as JSON for Perfetto and Chrome's trace viewer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ppframe.schedule.action import parts
from ppframe.simulator.timeline import Timeline, TimelineEntry, microbatch_of


def chrome_trace(timelines: Mapping[str, Timeline], *, microseconds_per_unit: float = 1e6) -> str:
    """JSON text with one process per timeline and one thread per rank.

    Several timelines, such as the predicted and the measured one, lie under each other in the
    viewer, each from its own time zero. Open it at https://ui.perfetto.dev or chrome://tracing.

    Args:
        timelines: the name to show for each timeline, and its entries.
        microseconds_per_unit: length of a time unit of the entries; the default is for seconds.

    Returns:
        an object with `traceEvents`; every entry is a complete event that has stage, kind and
        microbatch among its `args`.

    Reference:
        Trace Event Format, Google, 2016: complete events (`X`) and metadata events (`M`).

    Example:
        >>> from ppframe.schedule import Action
        >>> entry = TimelineEntry(0, Action.parse("0F0"), 1.0, 3.0)
        >>> event = json.loads(chrome_trace({"measured": [entry]}))["traceEvents"][-1]
        >>> event["name"], event["ts"], event["dur"], event["tid"]
        ('r0/0_F_0', 0.0, 2000000.0, 0)
    """
    events: list[dict[str, Any]] = []
    for process, (name, timeline) in enumerate(timelines.items()):
        entries = sorted(timeline, key=lambda entry: (entry.rank, entry.start))
        zero = min((entry.start for entry in entries), default=0.0)
        events.append(_metadata("process_name", name, process))
        for rank in sorted({entry.rank for entry in entries}):
            events.append(_metadata("thread_name", f"rank {rank}", process, rank))
        events.extend(_events(entries, process, zero, microseconds_per_unit))
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events})


def _events(
    entries: Timeline, process: int, zero: float, microseconds_per_unit: float
) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield {
            "name": entry.name,
            "cat": "compute" if entry.is_compute else "communication",
            "ph": "X",
            "ts": (entry.start - zero) * microseconds_per_unit,
            "dur": entry.duration * microseconds_per_unit,
            "pid": process,
            "tid": entry.rank,
            "args": _arguments(entry),
        }


def _arguments(entry: TimelineEntry) -> dict[str, Any]:
    """Stage, kind and microbatch, as a list where an action has two parts."""
    singles = parts(entry.action)
    arguments: dict[str, list[Any]] = {
        "stage": [part.stage for part in singles],
        "kind": [part.kind.value for part in singles],
        "microbatch": [microbatch_of(part) for part in singles],
    }
    return {key: value[0] if len(value) == 1 else value for key, value in arguments.items()}


def _metadata(what: str, name: str, process: int, thread: int = 0) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
