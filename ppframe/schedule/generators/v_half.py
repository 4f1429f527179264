"""V-Half: half the memory of 1F1B."""

from __future__ import annotations

from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.v_blocks import v_rows
from ppframe.schedule.generators.v_offsets import Offsets
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int | None:
    ranks, _, microbatches = shape
    if microbatches < 2 * ranks:
        return None
    if ranks < 3:
        return 6 * microbatches + ranks - 1
    return 6 * microbatches + 3 * ranks - (4 if ranks % 2 else 7)


def _peak(shape: Shape) -> tuple[int, ...] | None:
    ranks, _, microbatches = shape
    if microbatches < 2 * ranks:
        return None
    return (2 * ((ranks + 2) // 2),) * ranks


FACTS = ScheduleFacts(
    summary="two stages of each rank in a V, in half the memory of 1F1B",
    placement="v",
    chunks_per_rank=2,
    min_chunks=2,
    max_chunks=2,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Qi et al., Pipeline Parallelism with Controllable Memory, 2024, arXiv 2405.15362, "
    "section 3",
)


@schedule_generator("v-half", FACTS)
def v_half(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """A microbatch takes every other slot on its way down the V, and the next slot on its way back.

    Its next one follows six slots later; weight gradients take what slots are left::

        rank 0  0F0 0F1 0F2 0F3 0F4 .   .   7F0 7B0 7W0 7F1 7B1
        rank 1      1F0 1F1 1F2 1F3 .   6F0 .   6F1 6B0 6W0 6F2
        rank 2          2F0 2F1 2F2 5F0 .   5F1 .   5F2 5B0 5W0
        rank 3              3F0 4F0 3F1 4F1 3F2 4F2 .   .   4B0

    No microbatch of the steady state leaves a bubble where W + 2 B >= 2 F and W + 2 F >= 2 B.

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: 2.

    Facts:
        from M = 2 P on: makespan in unit costs 6 M + 3 P - 7 for even P, 6 M + 3 P - 4 for odd,
        6 M + P - 1 below P = 3; in flight 2 floor((P + 2) / 2) chunks, never more with fewer
        microbatches. 1F1B holds up to 2 P.

    Reference:
        Qi et al., Pipeline Parallelism with Controllable Memory, 2024, arXiv 2405.15362, section 3;
        the ends pulled together as the authors' program does. With fewer than 2 P microbatches the
        shorter of that and the schedule of 2 P without the last ones.

    Example:
        >>> v_half(2, 1).actions
        ((0F0, 3F0, 3B0, 3W0, 0B0, 0W0), (1F0, 2F0, 2B0, 1B0, 2W0, 1W0))
    """
    gap = 0 if ranks % 2 else 3  # for even P, backwards would meet forwards
    rows = v_rows(Offsets(2, 1, at_top=gap, before_back=1).blocks(ranks), microbatches)
    return Schedule(rows, Placement.v(ranks, chunks_per_rank), "v-half")
