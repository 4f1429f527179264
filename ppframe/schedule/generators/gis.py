"""GIS: interleaving with a split backward, whose weight gradients run at once."""

from __future__ import annotations

from collections.abc import Sequence

from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.orders import (
    group_sizes,
    split_depth_first,
    wait_of_small_groups,
)
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def makespan(shape: Shape, sizes: Sequence[int]) -> int:
    """Unit costs, for groups of these sizes."""
    ranks, chunks, microbatches = shape
    wait = wait_of_small_groups(ranks, chunks, sizes[0])
    return 3 * microbatches * chunks + 2 * (ranks - 1) + wait


def peak_in_flight(shape: Shape, sizes: Sequence[int]) -> tuple[int, ...]:
    """The warm-up and the forward that follows it, for groups of these sizes."""
    ranks, chunks, microbatches = shape
    warmups = ((chunks - 1) * sizes[0] + ranks - 1 - rank for rank in range(ranks))
    return tuple(min(chunks * microbatches, warmup + 1) for warmup in warmups)


FACTS = ScheduleFacts(
    summary="interleaving in the memory of 1F1B: a split backward, weight gradients at once",
    placement="loop",
    chunks_per_rank=2,
    makespan=lambda shape: makespan(shape, group_sizes(shape.ranks, shape.microbatches)),
    peak_in_flight=lambda shape: peak_in_flight(
        shape, group_sizes(shape.ranks, shape.microbatches)
    ),
    reference="Wan et al., PipeOffload: Improving Scalability of Pipeline Parallelism with Memory "
    "Optimization, 2025, arXiv 2503.01328, section 3.1",
)


@schedule_generator("gis", FACTS)
def gis(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """The order of `interleaved-1f1b` with a split backward and half of its extra warm-up.

    An input gradient goes on before the weight gradient runs, so backwards are as quick as
    forwards on the way back, and one warm-up forward for each hop is enough. As every weight
    gradient runs right after, no activation is kept for it.

    ::

        rank 0  0F0  0F1  2F0  2F1  .    2B0  2W0  .    2B1  2W1  0B0  0W0  0B1  0W1
        rank 1       1F0  1F1  3F0  3B0  3W0  3F1  3B1  3W1  1B0  1W0  1B1  1W1

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any; where max(1, M div P) doesn't divide M, the first
            groups are larger by one.
        chunks_per_rank: stages of each rank (V), any.

    Facts:
        makespan 3 M V + 2 (P - 1) in unit costs for M ≥ P, and what small groups wait to come round
        for fewer; at most min(M V, (V - 1) g + P - r) in flight on rank r, with groups of g. Where
        W takes no longer than F and B, the bubble is (P - 1) (F + B).

    Reference:
        Wan et al., PipeOffload: Improving Scalability of Pipeline Parallelism with Memory
        Optimization, 2025, arXiv 2503.01328, section 3.1, where P divides M; groups of another size
        as in `interleaved-1f1b`.

    Example:
        >>> gis(2, 1).actions
        ((0F0, 2F0, 2B0, 2W0, 0B0, 0W0), (1F0, 3F0, 3B0, 3W0, 1B0, 1W0))
    """
    placement = Placement.loop(ranks, chunks_per_rank)
    rows = split_depth_first(placement, group_sizes(ranks, microbatches), (0,) * ranks)
    return Schedule(rows, placement, "gis")
