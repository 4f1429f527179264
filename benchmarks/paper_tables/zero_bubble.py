"""Tables 5 and 8 of the Zero Bubble paper: their settings, their rates, and ours.

Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241. The settings are its Tables 9
and 8: times in ms of a rank, in Table 8 of half a rank. Rates are bubble / time.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ppframe.schedule import ActionKind, build_schedule
from ppframe.schedule.action import Compute
from ppframe.schedule.generators.v_clock import Clock
from ppframe.schedule.generators.v_search import PUBLISHED, VPass
from ppframe.schedule.generators.zb_search import Times
from ppframe.simulator import Cost, simulate

FILE = Path(__file__).parent / "zero_bubble.csv"
SEQUENCE = 1024
TIMES = ("forward", "backward_input", "backward_weight")
F, BW = ActionKind.F, ActionKind.BW


class Row(NamedTuple):
    """One setting of the Zero Bubble paper; times are ms of a rank and microbatch."""

    table: str
    model: str
    ranks: int
    microbatches: int
    forward: float
    backward_input: float
    backward_weight: float
    transfer: float
    weight_share: float
    interleaved_chunks: int
    published: dict[str, float]

    def cost(self, chunks: int = 1) -> Cost:
        """Of a stage, where a rank has that many."""
        times = (self.forward, self.backward_input, self.backward_weight)
        f, b, w = (time / chunks for time in times)
        return Cost(f, b, w, transfer=self.transfer, weight_share=self.weight_share)


def zero_bubble_rows() -> list[Row]:
    """The settings of Tables 5 and 8, with the rates that are published for them."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return [_row(cells) for cells in csv.DictReader(file)]


def _row(cells: dict[str, str]) -> Row:
    hidden, heads, parts = (int(cells[name]) for name in ("hidden", "heads", "timed_chunks"))
    f, b, w = (float(cells[name]) * parts for name in TIMES)
    rates = {name: float(cells[name]) for name in RATES if cells[name]}
    return Row(
        cells["table"],
        cells["model"],
        int(cells["ranks"]),
        int(cells["microbatches"]),
        f,
        b,
        w,
        float(cells["transfer"]),
        32 * hidden / (34 * hidden + 5 * heads * SEQUENCE),  # per token: kept for W / kept by F
        int(cells["interleaved_chunks"]),
        rates,
    )


class Rate(NamedTuple):
    """A column of the tables: which schedule, with how many chunks, and by which metric."""

    schedule: str
    chunks_of: Callable[[Row], int]
    is_span: bool = False
    is_searched: bool = False

    def of(self, row: Row) -> float:
        """The rate that the simulator gives for ours."""
        chunks = self.chunks_of(row)
        cost = row.cost(chunks)
        options = {"cost": cost} if self.is_searched else {}
        schedule = build_schedule(
            self.schedule, row.ranks, row.microbatches, chunks_per_rank=chunks, **options
        )
        report = simulate(schedule, cost)
        return report.span_bubble if self.is_span else report.bubble_fraction


def _one(_: Row) -> int:
    return 1


def _two(_: Row) -> int:
    return 2


def _interleaved(row: Row) -> int:
    return row.interleaved_chunks


RATES = {
    "1f1b": Rate("1f1b", _one),
    "interleaved_published": Rate("interleaved-1f1b", _interleaved),
    "interleaved_counted": Rate("interleaved-1f1b", _interleaved),
    "zb_h1": Rate("zb-h1", _one),
    "zb_h2": Rate("zb-h2", _one, is_span=True),
    "zb_1p": Rate("zb-1p", _one, is_span=True, is_searched=True),
    "zb_2p": Rate("zb-2p", _one, is_span=True, is_searched=True),
    "zb_v_searched": Rate("v-zb", _two, is_span=True, is_searched=True),
    "zbv": Rate("zbv", _two, is_span=True),
}
"""Columns of the file → ours. 1F1B, interleaved and ZB-H1 go by makespan, the others by span."""


def undercounted(row: Row) -> float:
    """The rate of interleaved 1F1B as published: few of the waits from one chunk to the next count.

    A microbatch that isn't the first of its P neither waits for its forward on the last rank before
    the first rank takes it up again, nor for its backward the other way round.
    """
    ranks, stages = row.ranks, row.ranks * row.interleaved_chunks
    cost = row.cost(row.interleaved_chunks)
    times = {F: cost.of_stages("forward", 1)[0], BW: cost.of_stages("backward", 1)[0]}
    there: dict[tuple[int, ActionKind, int], float] = {}

    def arrival(stage: int, kind: ActionKind, microbatch: int) -> float | None:
        """When what an action needs is on its rank; None: not yet."""
        source = stage - 1 if kind is F else stage + 1
        if source in (-1, stages):
            return 0.0 if kind is F else there.get((stage, F, microbatch))
        if max(stage, source) % ranks == 0 and microbatch % ranks:
            return 0.0
        done = there.get((source, kind, microbatch))
        return None if done is None else done + row.transfer

    schedule = build_schedule(
        "interleaved-1f1b", ranks, row.microbatches, chunks_per_rank=row.interleaved_chunks
    )
    rows = schedule.actions
    waiting = [[a for a in reversed(actions) if isinstance(a, Compute)] for actions in rows]
    now = [0.0] * ranks
    while any(waiting):
        for rank, actions in enumerate(waiting):
            while actions and (ready := arrival(*actions[-1])) is not None:
                action = actions.pop()
                now[rank] = max(now[rank], ready) + times[action.kind]
                there[action] = now[rank]
    busy = sum(times.values()) * row.microbatches * row.interleaved_chunks
    return 1 - busy / max(now)


def published_passes(row: Row) -> float:
    """The rate of ZB-V by the two passes of our search that are the paper's."""
    times = Times.of(row.cost(2), 2 * row.ranks)
    spans = []
    for variant in PUBLISHED:
        clock = Clock(times, row.microbatches)
        assert VPass(clock, times, 2 * row.ranks, variant).runs_to_its_end(row.microbatches)
        spans.append(clock.span)
    busy = row.microbatches * (row.forward + row.backward_input + row.backward_weight)
    return 1 - busy / min(spans)


def limited(row: Row, limit: float) -> float:
    """The rate of a searched schedule whose ranks hold at most that many microbatches."""
    cost = row.cost()
    schedule = build_schedule("zb-2p", row.ranks, row.microbatches, cost=cost, memory_limit=limit)
    return simulate(schedule, cost).span_bubble


def knees(row: Row) -> tuple[float, float]:
    """Where the paper sees the curve of rates over limits go flat, and where it reaches zero."""
    way = (row.ranks - 1) * (row.backward_input + 2 * row.transfer)
    flat = (way + row.ranks * row.forward) / row.forward
    return flat, flat + row.ranks - 1
