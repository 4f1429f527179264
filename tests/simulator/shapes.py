"""Schedules for the tests: drawn by hypothesis, written by hand, and built by published rules."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from ppframe.schedule import (
    Action,
    ActionKind,
    Compute,
    LoweredSchedule,
    Placement,
    Schedule,
    build_schedule,
    forward_only,
    schedule_facts,
)
from ppframe.schedule.generators.facts import Shape
from ppframe.simulator import Cost

F, B, W, BW = ActionKind.F, ActionKind.B, ActionKind.W, ActionKind.BW
NAMES = (
    "gpipe", "1f1b", "interleaved-1f1b", "looped-bfs", "dora-dfs", "dora", "zb-h2",
    "interleaved-zb", "zbv",
)  # fmt: skip

# Quarters: sums of them are exact, so that equal times are equal numbers.
QUARTERS = st.integers(0, 12).map(lambda n: n / 4)
DURATIONS = st.integers(1, 12).map(lambda n: n / 4)


def rows(*texts: str) -> tuple[tuple[Action, ...], ...]:
    """A list of actions per rank from their texts."""
    return tuple(tuple(map(Action.parse, text.split())) for text in texts)


def compute_only(*texts: str, placement: Placement | None = None) -> Schedule:
    return Schedule(rows(*texts), placement or Placement.loop(len(texts)))


def lowered(*texts: str, placement: Placement | None = None) -> LoweredSchedule:
    return LoweredSchedule(rows(*texts), placement or Placement.loop(len(texts)))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Any schedule of any generator, up to 4 ranks, 3 chunks, 10 microbatches; or forwards only."""
    name = draw(st.sampled_from(NAMES))
    ranks, microbatches = draw(st.integers(1, 4)), draw(st.integers(1, 10))
    facts = schedule_facts(name)
    assert facts is not None
    chunks = draw(st.integers(facts.min_chunks, facts.max_chunks or 3))
    if draw(st.integers(0, 5)) == 0:
        return forward_only(Placement.v(ranks, chunks), microbatches)
    if not facts.takes_microbatches(Shape(ranks, chunks, microbatches)):
        microbatches = ranks
    return build_schedule(name, ranks, microbatches, chunks_per_rank=chunks)


@st.composite
def costs(draw: st.DrawFn, num_stages: int) -> Cost:
    """Different durations and hops for every stage."""

    def numbers(of: st.SearchStrategy[float]) -> Sequence[float]:
        return draw(st.lists(of, min_size=num_stages, max_size=num_stages))

    return Cost(
        forward=numbers(DURATIONS),
        backward_input=numbers(DURATIONS),
        backward_weight=numbers(DURATIONS),
        backward=draw(st.none() | DURATIONS),
        transfer=numbers(QUARTERS),
    )


def zero_bubble(ranks: int, microbatches: int, *, warmups: int) -> Schedule:
    """ZB-H1 (`warmups` 1) or ZB-H2 (2): Qi et al., 2023, arXiv 2401.10241, section 2.

    Rank r starts with `warmups` · (P − 1 − r) forwards and holds back the first `warmups` · r of
    its backwards for the weights.
    """
    return Schedule(
        tuple(_zero_bubble_row(rank, ranks, microbatches, warmups) for rank in range(ranks)),
        Placement.loop(ranks),
    )


def _zero_bubble_row(rank: int, ranks: int, microbatches: int, warmups: int) -> tuple[Action, ...]:
    first = min(microbatches, warmups * (ranks - 1 - rank))
    held = warmups * (ranks - 1) - first
    row = [Compute(rank, F, i) for i in range(first)]
    for i in range(microbatches):
        if first + i < microbatches:
            row.append(Compute(rank, F, first + i))
        row.append(Compute(rank, B, i))
        if i >= held:
            row.append(Compute(rank, W, i - held))
    row += [Compute(rank, W, i) for i in range(microbatches - held, microbatches)]
    return tuple(row)
