"""What a step cost: idle time of the ranks, and memory."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import torch

from ppframe.runtime import ActionTime, Pipeline
from ppframe.schedule import Action, Schedule
from ppframe.simulator import TimelineEntry, replay

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_GIB = float(1 << 30)

BubbleSource = Literal["wall", "replayed"]


@final
@dataclass(frozen=True, slots=True)
class Bubble:
    """Idle share of all ranks' time in one step.

    Args:
        fraction: Σ idle / (P · makespan).
        source: `wall` where ranks ran side by side and their own times were read; `replayed` where
            they took turns, so that only how long each action took could be read, and the
            simulator put these times on the schedule.
    """

    fraction: float
    source: BubbleSource


def measure_bubble(
    schedule: Schedule, timeline: Sequence[ActionTime], source: BubbleSource
) -> Bubble:
    """Idle share of a recorded step.

    Args:
        schedule: the schedule that ran.
        timeline: when each action ran; communication is no work and counts as idle.
        source: how its times are to be read; see `bubble_source`.
    """
    if source == "replayed":
        replayed = replay(schedule, _durations(schedule, timeline))
        return Bubble(replayed.bubble_fraction, "replayed")
    worked = _worked(schedule, timeline)
    makespan = max(entry.end_s for entry in worked) - min(entry.start_s for entry in worked)
    busy = sum(entry.end_s - entry.start_s for entry in worked)
    return Bubble(1.0 - busy / (schedule.ranks * makespan) if makespan else 0.0, "wall")


def measured_timeline(
    schedule: Schedule, timeline: Sequence[ActionTime], source: BubbleSource
) -> tuple[TimelineEntry, ...]:
    """The computations of a recorded step in seconds, ranks side by side.

    Args:
        schedule: the schedule that ran.
        timeline: when each action ran.
        source: how its times are to be read. What ranks did in turns is put on the schedule by
            the simulator.
    """
    if source == "replayed":
        return replay(schedule, _durations(schedule, timeline)).timeline
    return tuple(
        TimelineEntry(entry.rank, entry.action, entry.start_s, entry.end_s)
        for entry in _worked(schedule, timeline)
    )


def bubble_source(pipeline: Pipeline) -> BubbleSource:
    """How the steps of a pipeline are measured."""
    return "wall" if pipeline.runs_side_by_side else "replayed"


def _worked(schedule: Schedule, timeline: Sequence[ActionTime]) -> list[ActionTime]:
    computed = frozenset(action for actions in schedule.actions for action in actions)
    return [entry for entry in timeline if entry.action in computed]


def _durations(schedule: Schedule, timeline: Sequence[ActionTime]) -> dict[Action, float]:
    return {entry.action: entry.end_s - entry.start_s for entry in _worked(schedule, timeline)}


def reset_peak_memory(devices: Sequence[torch.device]) -> None:
    """Let peaks start anew; the process's own only where the system lets us (Linux)."""
    for device in _cuda(devices):
        torch.cuda.reset_peak_memory_stats(device)
    with contextlib.suppress(OSError):
        _CLEAR_REFS.write_text("5", encoding="ascii")


def memory_by_rank(pipeline: Pipeline) -> dict[str, float]:
    """Peak memory of the ranks; where they are processes, the first one learns that of all."""
    own = peak_memory_gib(pipeline.devices)
    if pipeline.peers.size == 1:
        return own
    peaks = pipeline.peers.gather(own["memory/rank0_peak_gib"]) or own.values()
    return {f"memory/rank{rank}_peak_gib": peak for rank, peak in enumerate(peaks)}


def peak_memory_gib(devices: Sequence[torch.device]) -> dict[str, float]:
    """Peak memory in this process under `memory/rank{r}_peak_gib`.

    CUDA ranks have what was allocated on their device. Ranks on the CPU share a process: its peak
    of resident memory stands under rank 0.
    """
    peaks = {
        f"memory/rank{rank}_peak_gib": torch.cuda.max_memory_allocated(device) / _GIB
        for rank, device in enumerate(devices)
        if device.type == "cuda"
    }
    if any(device.type == "cpu" for device in devices):
        peaks["memory/rank0_peak_gib"] = _resident_peak_bytes() / _GIB
    return peaks


def _resident_peak_bytes() -> float:
    """Peak of this process's resident memory; 0 where the system doesn't say."""
    try:
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024
    except OSError:
        return _resource_peak_bytes()
    return 0.0


def _resource_peak_bytes() -> float:
    """The same where there is no /proc: macOS counts bytes, others KiB; Windows has nothing."""
    try:
        import resource
        import sys
    except ImportError:
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _cuda(devices: Sequence[torch.device]) -> set[torch.device]:
    return {device for device in devices if device.type == "cuda"}
