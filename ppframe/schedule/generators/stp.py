"""STP: two stages of each rank in a V, nearly everything in overlapped pairs."""

from __future__ import annotations

from collections import deque
from itertools import count

from ppframe.schedule.action import Action, ActionKind, Compute
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.orders import counted, counted_split, draw, paired, popped
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int:
    return 6 * shape.microbatches + shape.ranks - 1


def _peak(shape: Shape) -> tuple[int, ...]:
    return tuple(3 * shape.ranks + 1 + max(0, rank - 1) for rank in range(shape.ranks))


FACTS = ScheduleFacts(
    summary="two stages of each rank in a V; pairs of any two kinds, to hide tensor parallelism",
    placement="v",
    chunks_per_rank=2,
    min_chunks=2,
    max_chunks=2,
    takes_microbatches=lambda shape: shape.microbatches >= 3 * shape.ranks - 1,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Qi et al., Synergistic Tensor and Pipeline Parallelism, 2025, arXiv 2510.27257; "
    "order of its code, github.com/MICLAB-BUPT/STP",
)


@schedule_generator("stp", FACTS)
def stp(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """A V in which forwards are paired with backwards, weight gradients, or each other.

    A pair hides the tensor-parallel messages of each of its two behind the other's computation.
    A backward is split only where the pipeline needs it, since a lone B hides little.

    ::

        rank 0  0F0  0F1  0F2  3F0  0F3        (3F1;3B0)   (0F4;3W0)   (3F2;3BW1)  ...
        rank 1       1F0  2F0  1F1  2F1        (1F2;1F3)   (2F2;2BW0)  (1F4;1BW0)  ...

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), at least 3 P - 1.
        chunks_per_rank: 2.

    Facts:
        makespan 6 M + P - 1 in unit costs; 3 P + 1 in flight on the first two ranks, and one more
        on each next. The bubble is (P - 1) (F + B - W) where the three take the same time.

    Reference:
        Qi et al., Synergistic Tensor and Pipeline Parallelism, 2025, arXiv 2510.27257; order of its
        code, github.com/MICLAB-BUPT/STP, without offloading. The code takes fewer than 3 P - 1
        microbatches too, but then its lists don't hold together.

    Example:
        >>> stp(1, 2).actions
        ((0F0, 1F0, 0F1, (1F1;1BW0), 0BW0, 1BW1, 0BW1),)
    """
    placement = Placement.v(ranks, chunks_per_rank)
    rows = (_row(rank, placement, microbatches) for rank in range(ranks))
    return Schedule(tuple(rows), placement, "stp")


def _row(rank: int, placement: Placement, microbatches: int) -> tuple[Action, ...]:
    ranks, (there, back) = placement.ranks, placement.stages_of(rank)
    f0, f1 = (counted(ActionKind.F, stage, count()) for stage in (there, back))
    done0, done1, pending = count(), count(), deque[Compute]()
    bw0, bw1 = counted(ActionKind.BW, there, done0), counted(ActionKind.BW, back, done1)
    b0, b1 = counted_split(there, done0, pending), counted_split(back, done1, pending)
    w = popped(pending)
    f0_f0, f0_w, f1_b1 = paired(f0, f0), paired(f0, w), paired(f1, b1)
    to_last, from_first = ranks - 1 - rank, rank + 1
    pairs = 2 * (microbatches - 3 * ranks + rank) + 3
    main = [paired(f1, bw1), paired(f0, bw0)] * (pairs // 2 + 1)
    split = [f1_b1, paired(f0, b0)] * (pairs // 2 + 1)
    return draw(
        [
            *[f0] * (2 * to_last),
            *[f0, f1] * from_first,
            *[f0] * (from_first % 2),
            *[f0_f0] * (from_first // 2),
            *[f1_b1, f0_w] * to_last,
            *main[: pairs - rank],
            *split[pairs - rank : pairs],
            *[bw0, f1_b1] * (2 * ranks - rank - 2),
            *[bw0, bw1] * from_first,
            *[bw0, w, w] * to_last,
            bw0,
            *[w] * (2 * rank),
        ]
    )
