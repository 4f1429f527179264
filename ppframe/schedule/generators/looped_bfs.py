"""Looped BFS: GPipe over several stages of each rank, breadth first."""

from __future__ import annotations

from ppframe.schedule.action import ActionKind
from ppframe.schedule.bulk import computes
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int:
    """A chunk takes a rank the time of M microbatches, or of the way round where that is longer."""
    ranks, chunks, microbatches = shape
    return 3 * ((chunks - 1) * max(microbatches, ranks) + microbatches + ranks - 1)


def _peak(shape: Shape) -> tuple[int, ...]:
    return (shape.microbatches * shape.chunks_per_rank,) * shape.ranks


FACTS = ScheduleFacts(
    summary="every chunk runs all its microbatches before the next; its gradient is done in one go",
    placement="loop",
    chunks_per_rank=2,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Lamy-Poirier, Breadth-First Pipeline Parallelism, 2022, arXiv 2211.05953, section 4",
)


@schedule_generator("looped-bfs", FACTS)
def looped_bfs(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """Every chunk runs all its microbatches before the next chunk starts.

    A chunk's gradient is complete after one block, so reducing or sharding it costs one message
    for a chunk, not one for a group of microbatches; for that all microbatches are in flight.

    ::

        rank 0  0F0 0F1 0F2 2F0 2F1 2F2 ...         2BW2 2BW1 2BW0 0BW2 0BW1 0BW0
        rank 1      1F0 1F1 1F2 3F0 3F1 3F2 3BW2 3BW1 3BW0 1BW2 1BW1 1BW0

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: stages of each rank (V), any.

    Facts:
        makespan 3 ((V - 1) max(M, P) + M + P - 1) in unit costs; M V in flight on every rank.

    Reference:
        Lamy-Poirier, Breadth-First Pipeline Parallelism, 2022, arXiv 2211.05953, section 4. Each
        chunk's backwards run from the last microbatch down, as torch has them.

    Example:
        >>> looped_bfs(1, 2).actions
        ((0F0, 0F1, 1F0, 1F1, 1BW1, 1BW0, 0BW1, 0BW0),)
    """
    placement = Placement.loop(ranks, chunks_per_rank)
    rows = []
    for rank in range(ranks):
        stages = placement.stages_of(rank)
        pairs = [(stage, microbatch) for stage in stages for microbatch in range(microbatches)]
        rows.append((*computes(ActionKind.F, pairs), *computes(ActionKind.BW, pairs[::-1])))
    return Schedule(tuple(rows), placement, "looped-bfs")
