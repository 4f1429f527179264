"""Timelines as JSON for Perfetto and Chrome's trace viewer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ppframe.schedule.action import parts
from ppframe.schedule.dependencies import dependencies
from ppframe.simulator.memory import gains_of, memory_curve
from ppframe.simulator.timeline import Timeline, TimelineEntry, microbatch_of, num_stages_of

MAX_LINKED: Final = 50_000
"""Computations of a timeline up to which its arrows and counters are written."""
_END_OF_SLICE: Final = 0.999  # an arrow belongs to the slice at its time, and the end is outside

Event = dict[str, Any]


def chrome_trace(
    timelines: Mapping[str, Timeline], *, microseconds_per_unit: float | Mapping[str, float] = 1e6
) -> str:
    """JSON text with one process per timeline and one thread per rank.

    Several timelines, such as the predicted and the measured one, lie under each other in the
    viewer, each from its own time zero. Arrows lead to each computation from those it needed, and a
    counter per rank shows the activations in flight; `otherData` says so where a timeline is too
    big for them. Open it at https://ui.perfetto.dev or chrome://tracing.

    Args:
        timelines: the name to show for each timeline, and its entries.
        microseconds_per_unit: length of a time unit of the entries, one for all or by name of the
            timeline; the default is for seconds.

    Returns:
        an object with `traceEvents`; every entry is a complete event that has stage, kind and
        microbatch among its `args`.

    Reference:
        Trace Event Format, Google, 2016: complete events (`X`), metadata events (`M`), flow events
        (`s`, `f`) and counter events (`C`).

    Example:
        >>> from ppframe.schedule import Action
        >>> entry = TimelineEntry(0, Action.parse("0F0"), 1.0, 3.0)
        >>> event = json.loads(chrome_trace({"measured": [entry]}))["traceEvents"][2]
        >>> event["name"], event["ts"], event["dur"], event["tid"]
        ('r0/0_F_0', 0.0, 2000000.0, 0)
    """
    events: list[Event] = []
    notes = []
    for process, (name, timeline) in enumerate(timelines.items()):
        per_unit = microseconds_per_unit
        scale = per_unit[name] if isinstance(per_unit, Mapping) else per_unit
        entries = _from_zero(timeline, scale)
        events.append(_metadata("process_name", name, process))
        for rank in sorted({entry.rank for entry in entries}):
            events.append(_metadata("thread_name", f"rank {rank}", process, rank))
        events.extend(_slice(entry, process) for entry in entries)
        computes = [entry for entry in entries if entry.is_compute]
        if len(computes) <= MAX_LINKED:
            events.extend(_arrows(computes, process))
            events.extend(_counters(computes, process))
        else:
            notes.append(f"{name}: no arrows and counters for {len(computes)} computations")
    other = {"otherData": {"notes": "; ".join(notes)}} if notes else {}
    return json.dumps({"displayTimeUnit": "ms", **other, "traceEvents": events})


def _from_zero(timeline: Timeline, scale: float) -> list[TimelineEntry]:
    """Entries by rank and start, in microseconds since the first start."""
    entries = sorted(timeline, key=lambda entry: (entry.rank, entry.start))
    zero = min((entry.start for entry in entries), default=0.0)
    return [
        TimelineEntry(rank, action, (start - zero) * scale, (end - zero) * scale)
        for rank, action, start, end in entries
    ]


def _slice(entry: TimelineEntry, process: int) -> Event:
    return {
        "name": entry.name,
        "cat": "compute" if entry.is_compute else "communication",
        "ph": "X",
        "ts": entry.start,
        "dur": entry.duration,
        "pid": process,
        "tid": entry.rank,
        "args": _arguments(entry),
    }


def _arrows(computes: Sequence[TimelineEntry], process: int) -> Iterator[Event]:
    """From each computation to those that needed it, a start and a finish with the same id."""
    num_stages = num_stages_of(computes)
    ran = {part: entry for entry in computes for part in parts(entry.action)}
    number = 0
    for entry in computes:
        for way in dependencies(entry.action, num_stages):
            needed = next((ran[action] for action in way if action in ran), entry)
            if needed is entry:
                continue
            common = {"cat": "dependency", "name": "needs", "id": f"{process}.{number}"}
            within = needed.start + needed.duration * _END_OF_SLICE
            place = {"pid": process, "tid": needed.rank, "ts": within}
            yield {**common, "ph": "s", **place}
            place = {"pid": process, "tid": entry.rank, "ts": entry.start}
            yield {**common, "ph": "f", "bp": "e", **place}
            number += 1


def _counters(computes: Sequence[TimelineEntry], process: int) -> Iterator[Event]:
    """Activations in flight of each rank, whenever they change."""
    ones = (1.0,) * num_stages_of(computes)
    gains = gains_of(ones, ones)
    for rank in sorted({entry.rank for entry in computes}):
        curve = memory_curve((entry for entry in computes if entry.rank == rank), gains)
        for time, level in dict(curve).items():  # of changes at one moment the last one stays
            yield {
                "name": f"rank {rank} in flight",
                "ph": "C",
                "ts": time,
                "pid": process,
                "args": {"in flight": level},
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


def _metadata(what: str, name: str, process: int, thread: int = 0) -> Event:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
