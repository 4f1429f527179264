"""GIS-H: GIS with groups of half the size, for half of the memory."""

from __future__ import annotations

from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.gis import makespan, peak_in_flight
from ppframe.schedule.generators.orders import group_sizes, split_depth_first
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _sizes(shape: Shape) -> tuple[int, ...]:
    """Groups of ceil(P / 2); where M isn't a multiple of it, larger ones of at most P."""
    return group_sizes((shape.ranks + 1) // 2, shape.microbatches)


FACTS = ScheduleFacts(
    summary="GIS with groups of half the size: about half of the memory, more bubble",
    placement="loop",
    chunks_per_rank=2,
    makespan=lambda shape: makespan(shape, _sizes(shape)),
    peak_in_flight=lambda shape: peak_in_flight(shape, _sizes(shape)),
    reference="Wan et al., PipeOffload: Improving Scalability of Pipeline Parallelism with Memory "
    "Optimization, 2025, arXiv 2503.01328, section 3.1",
)


@schedule_generator("gis-h", FACTS)
def gis_h(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """`gis` with groups of half as many microbatches as there are ranks.

    A smaller group comes to the next chunk before it has come round from the last rank, so a rank
    waits for it; for that fewer microbatches are in flight.

    ::

        rank 0  0F0 0F1 .   .   4F0 4F1 .   .   .   .   .   4B0 4W0
        rank 1      1F0 1F1 .   .   5F0 5F1 .   .   .   5B0 5W0
        rank 2          2F0 2F1 .   .   6F0 6F1 .   6B0 6W0
        rank 3              3F0 3F1 .   .   7F0 7B0 7W0 7F1 7B1 7W1

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any; groups are of ceil(P / 2), and larger by as much as it
            takes to have max(1, M div ceil(P / 2)) of them.
        chunks_per_rank: stages of each rank (V), any.

    Facts:
        makespan 3 M V + 2 (P - 1) + (V - 1) (P - g) in unit costs, with first groups of g, for
        M ≥ P / 2, and more for fewer; at most min(M V, (V - 1) g + P - r) in flight on rank r. The
        bubble is (P - 1) (F + B) + (V - 1) (P - g) (F + B - W) where the three take the same time.

    Reference:
        Wan et al., PipeOffload: Improving Scalability of Pipeline Parallelism with Memory
        Optimization, 2025, arXiv 2503.01328, section 3.1, which lets g be from ceil(P / 2) to P.

    Example:
        >>> gis_h(2, 2).actions[0]
        (0F0, 2F0, 0F1, 2B0, 2W0, 2F1, 0B0, 0W0, 2B1, 2W1, 0B1, 0W1)
    """
    placement = Placement.loop(ranks, chunks_per_rank)
    sizes = _sizes(Shape(ranks, chunks_per_rank, microbatches))
    return Schedule(split_depth_first(placement, sizes, (0,) * ranks), placement, "gis-h")
