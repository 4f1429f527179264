"""The figures of one pass through a schedule, computed from its timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import final

from ppframe.schedule import Action, ActionKind, Overlap
from ppframe.schedule.cost import Cost
from ppframe.simulator.memory import Gains, gains_of
from ppframe.simulator.timeline import COMPUTES, TimelineEntry


@final
@dataclass(frozen=True, slots=True)
class SimulationReport:
    """What a schedule costs in time and memory.

    ::

        rank 0  F0 F1 ·· ·· BW0··· BW1···      span: own first start to own last end
        rank 1  ·· F0 F1 BW0··· BW1··· ··      makespan: first start to last end anywhere

    Args:
        makespan: first start to last end over all ranks, in the unit of the cost.
        bubble_fraction: idle time of all ranks / (ranks × makespan).
        span_bubble: 1 − busy / span of the rank with the longest span, the first of them.
        idle: time of each rank, within the makespan, in which it does not compute.
        peak_in_flight: for each rank the most (stage, microbatch) pairs whose F ran and whose last
            backward part did not. Without any backward nothing is kept, and one F is in flight.
        peak_activation: the same in activations of one stage, where B frees all but the share that
            W needs; divide by the chunks of a rank for the papers' M_B.
        peak_bytes: the same in bytes, and the bytes of the rank's stages that stay.
        timeline: every action, rank by rank in the order of its list.
        critical_path: computations in the order of time, none of which could take longer without
            the makespan doing so too. Each starts when the one before it ends, or a hop later; in a
            lowered schedule several hops, where a message waited for another one.

    Reference:
        `span_bubble` is the bubble rate by which Qi et al., Zero Bubble Pipeline Parallelism, 2023,
        arXiv 2401.10241, section 5.3, compare their schedules; they take `bubble_fraction` for
        1F1B. The two differ by what the ranks wait at both ends.
    """

    makespan: float
    bubble_fraction: float
    span_bubble: float
    idle: tuple[float, ...]
    peak_in_flight: tuple[int, ...]
    peak_activation: tuple[float, ...]
    peak_bytes: tuple[float, ...]
    timeline: tuple[TimelineEntry, ...] = field(repr=False)
    critical_path: tuple[TimelineEntry, ...] = field(repr=False)


def build_report(
    entries: Sequence[Sequence[TimelineEntry]],
    critical_path: tuple[TimelineEntry, ...],
    cost: Cost,
    num_stages: int,
) -> SimulationReport:
    """The report of a timeline.

    Args:
        entries: for each rank its entries, in the order in which they ran.
        critical_path: computations that no one could stretch without stretching the makespan.
        cost: bytes, and the share of an activation that W needs.
        num_stages: stages of the schedule.
    """
    timed = [[entry for entry in row if type(entry.action) in COMPUTES] for row in entries]
    computes = [[part for entry in row for part in _singles(entry.action)] for row in timed]
    spans = [row[-1].end - row[0].start if row else 0.0 for row in timed]
    busy = [sum(end - start for _, _, start, end in row) for row in timed]
    longest = max(range(len(spans)), key=lambda rank: (spans[rank], -rank))
    starts, ends = [row[0].start for row in timed if row], [row[-1].end for row in timed if row]
    makespan = max(ends, default=0.0) - min(starts, default=0.0)
    idle = tuple(makespan - work for work in busy)
    ones, share = (1.0,) * num_stages, cost.of_stages("weight_share", num_stages)
    return SimulationReport(
        makespan=makespan,
        bubble_fraction=_ratio(sum(idle), len(idle) * makespan),
        span_bubble=_ratio(spans[longest] - busy[longest], spans[longest]),
        idle=idle,
        peak_in_flight=tuple(map(round, _peaks(computes, gains_of(ones, ones)))),
        peak_activation=tuple(_peaks(computes, gains_of(ones, share))),
        peak_bytes=_peak_bytes(computes, cost, num_stages),
        timeline=tuple(entry for row in entries for entry in row),
        critical_path=critical_path,
    )


def _peak_bytes(
    computes: Sequence[Sequence[Action]], cost: Cost, num_stages: int
) -> tuple[float, ...]:
    """What stays all the time, and the most that the activations come to."""
    share = cost.of_stages("weight_share", num_stages)
    moving = _peaks(computes, gains_of(cost.of_stages("activation_bytes", num_stages), share))
    staying = cost.of_stages("weight_bytes", num_stages)
    stages = [{action.stage for action in row} for row in computes]
    resident = [sum(staying[stage] for stage in row) for row in stages]
    return tuple(a + b for a, b in zip(moving, resident, strict=True))


def _peaks(computes: Sequence[Sequence[Action]], gains: Gains) -> list[float]:
    """Highest running sum of each rank; without any backward each F gives back what it took."""
    sums = [[gains[action.kind][action.stage] for action in row] for row in computes]
    if any(action.kind is not ActionKind.F for row in computes for action in row):
        sums = [list(accumulate(row)) for row in sums]
    return [max(row, default=0.0) for row in sums]


def _singles(action: Action) -> tuple[Action, ...]:
    return action if isinstance(action, Overlap) else (action,)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
