"""Eager 1F1B: 1F1B with twice the warm-up, so that messages have time to travel."""

from __future__ import annotations

from ppframe.schedule.action import ActionKind
from ppframe.schedule.bulk import computes
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.orders import one_forward_one_backward
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int:
    return 3 * (shape.microbatches + shape.ranks - 1)


def _peak(shape: Shape) -> tuple[int, ...]:
    ranks, _, microbatches = shape
    return tuple(min(microbatches, 2 * (ranks - 1 - rank) + 1) for rank in range(ranks))


FACTS = ScheduleFacts(
    summary="1F1B with twice the warm-up: it waits for messages once, not once per P microbatches",
    placement="loop",
    max_chunks=1,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Zhuang et al., On Optimizing the Communication of Model Parallelism, 2022, "
    "arXiv 2211.05322, section 4",
)


@schedule_generator("eager-1f1b", FACTS)
def eager_1f1b(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
    """1F1B with two warm-up forwards for each hop to the last rank.

    In 1F1B a rank's next forward waits for the backward that was sent to it last, so every P
    microbatches the latency of all hops is paid anew. With twice as many microbatches on the way,
    messages travel while their ranks compute.

    ::

        rank 0  F0  F1  F2  F3  F4  BW0 F5  BW1 .   BW2
        rank 1      F0  F1  F2  BW0 F3  BW1 F4  BW2 F5
        rank 2          F0  BW0 F1  BW1 F2  BW2 F3  BW3

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: 1; for more see `interleaved-1f1b`, which warms up as eagerly.

    Facts:
        makespan 3 (M + P - 1) in unit costs; in flight at most min(M, 2 (P - 1 - r) + 1) on rank r.
        A hop of c adds 2 (P - 1) c, where 1F1B pays 2 (P - 1) (M / P + 1) c - 2 c.

    Reference:
        Zhuang et al., On Optimizing the Communication of Model Parallelism, 2022, arXiv 2211.05322,
        section 4.

    Example:
        >>> eager_1f1b(2, 3).actions
        ((0F0, 0F1, 0F2, 0BW0, 0BW1, 0BW2), (1F0, 1BW0, 1F1, 1BW1, 1F2, 1BW2))
    """
    rows = []
    for rank in range(ranks):
        pairs = [(rank, microbatch) for microbatch in range(microbatches)]
        warmup = min(microbatches, 2 * (ranks - 1 - rank))
        forwards, backwards = computes(ActionKind.F, pairs), computes(ActionKind.BW, pairs)
        rows.append(one_forward_one_backward(forwards, backwards, warmup))
    return Schedule(tuple(rows), Placement.loop(ranks, chunks_per_rank), "eager-1f1b")
