"""Figures that papers give in closed form, beside what ours come to for one shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ppframe.schedule import build_schedule
from ppframe.simulator import Cost, SimulationReport, simulate

RANKS, MICROBATCHES = 8, 24
UNIT = Cost(1, 1, 1)


class Figure(NamedTuple):
    """A published figure and ours."""

    what: str
    published: float
    ours: float


def simulated(
    name: str, ranks: int, microbatches: int, cost: Cost, chunks: int
) -> SimulationReport:
    return simulate(build_schedule(name, ranks, microbatches, chunks_per_rank=chunks), cost)


def bubble(report: SimulationReport, *, of_span: bool = False) -> float:
    """Idle time of a rank that idles least within the makespan, or of the longest span."""
    if not of_span:
        return min(report.idle)
    busy = report.makespan - min(report.idle)
    return busy * report.span_bubble / (1 - report.span_bubble)


def two_p_schedules() -> Iterator[Figure]:
    """Zero Bubble, section 2 and its Table 2, with the latency c of a hop."""
    p, m, f, b, w = RANKS, MICROBATCHES, 20.0, 19.0, 14.0
    for c in (0.0, 0.5):
        rows = (
            ("1f1b", (p - 1) * (f + b + w) + 2 * (p - 1) * (m / p + 1) * c - 2 * c, p),
            ("eager-1f1b", (p - 1) * (f + b + w) + 2 * (p - 1) * c, 2 * p - 1),
            ("zb-h1", (p - 1) * (f + b - w) + 4 * (p - 1) * c, p),
            ("zb-h2", (p - 1) * (f + b - 2 * w) + 2 * (p - 1) * c, 2 * p - 1),
        )
        for name, published, peak in rows:
            report = simulated(name, p, m, Cost(f, b, w, transfer=c, weight_share=0), 1)
            ours = bubble(report, of_span=name == "zb-h2")
            yield Figure(f"{name}, bubble, c = {c:g}", published, ours)
            if not c:
                yield Figure(f"{name}, peak in M_B", peak, max(report.peak_activation))


def building_blocks() -> Iterator[Figure]:
    """Controllable Memory: span bubble in times of F of a rank, peak in M_B."""
    for p in (8, 9, 16):
        bubbles = {
            "v-min": 2 * p - (2.5 if p % 3 else 3.5),
            "v-half": 1.5 * p - (2 if p % 2 else 3.5),
            "v-zb": 0,
        }
        peaks = {"v-min": (p + 4) // 3, "v-half": (p + 2) // 2, "v-zb": p}
        for name, published in bubbles.items():
            report = simulated(name, p, 3 * p, UNIT, 2)
            yield Figure(f"{name}, P = {p}, bubble", published, bubble(report, of_span=True) / 2)
            peak = max(report.peak_activation) / 2
            yield Figure(f"{name}, P = {p}, peak", peaks[name], peak)


def offload() -> Iterator[Figure]:
    """PipeOffload, Table 1, without offloading: bubble in unit costs, peak in whole models."""
    p, m = 16, 64
    for v in (2, 4):
        rows = (
            ("1f1b", 3 * v * (p - 1), 1.0),
            ("interleaved-1f1b", 3 * (p - 1), (v + 1) / v),
            ("gis", 2 * (p - 1), 1.0),
            ("gis-h", 2 * (p - 1) + (v - 1) * p / 2, (v + 1) / (2 * v)),
        )
        for name, published, peak in rows:
            chunks = 1 if name == "1f1b" else v
            cost = Cost(*(v / chunks,) * 3)
            report = simulated(name, p, m, cost, chunks)
            yield Figure(f"{name}, V = {v}, bubble", published, bubble(report))
            ours = max(report.peak_activation) / chunks / p
            yield Figure(f"{name}, V = {v}, peak", peak, ours)


def two_directions() -> Iterator[Figure]:
    """DualPipe's table, STP's table, and Chimera's ratio of bubbles."""
    for p in (4, 8):
        m, f, b, w = 4 * p, 4.0, 4.0, 3.0
        cost = Cost(f, b, w, weight_share=0)
        both = f + b + w  # of an overlapped pair, when overlapping saves nothing
        for name, published, peak, v in (
            ("dualpipe", (p / 2 - 1) * (both + b + w - 3 * w), p + 1, 1),
            ("dualpipe-v", (p - 1) * (both + b + w - 3 * w), 2 * p + 1, 2),
        ):
            report = simulated(name, p, m, cost, v)
            yield Figure(f"{name}, P = {p}, bubble", published, bubble(report))
            yield Figure(f"{name}, P = {p}, peak in stages", peak, max(report.peak_activation))
        report = simulated("stp", p, m, Cost(1, 1, 1, weight_share=0), 2)
        yield Figure(f"stp, P = {p}, bubble", p - 1, bubble(report))
        yield Figure(f"stp, P = {p}, peak in stages", 3 * p, max(report.peak_activation))
        for m in (p, 4 * p):
            report = simulated("chimera", p, m, Cost(2, 1, 1), 1)
            published = (p - 2) / (2 * m + p - 2)
            yield Figure(f"chimera, P = {p}, M = {m}, fraction", published, report.bubble_fraction)


def waves() -> Iterator[Figure]:
    """Hanayo's ratio of bubbles for M = P and BW twice as long as F; unconfirmed."""
    for p in (4, 8):
        for w in (1, 2, 4):
            report = simulate(build_schedule("hanayo", p, p, waves=w), UNIT)
            published = (2 * p - 2) / (3 * p * w + p - 1)
            yield Figure(f"hanayo, P = {p}, {w} waves", published, report.bubble_fraction)


TABLES = {
    "1F1B, ZB-H1 and ZB-H2": two_p_schedules,
    "V-Min, V-Half and V-ZB": building_blocks,
    "PipeOffload, Table 1": offload,
    "Two directions": two_directions,
    "Hanayo": waves,
}
