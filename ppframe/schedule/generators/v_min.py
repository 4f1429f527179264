"""V-Min: a third of the memory of 1F1B."""

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
    return 6 * microbatches + max(0, 4 * ranks - (5 if ranks % 3 else 7))


def _peak(shape: Shape) -> tuple[int, ...] | None:
    ranks, _, microbatches = shape
    if microbatches < 2 * ranks:
        return None
    most = 2 * ((ranks + 4) // 3)
    return tuple(most - 2 * (ranks % 3 == 2 and rank % 3 == 0) for rank in range(ranks))


FACTS = ScheduleFacts(
    summary="two stages of each rank in a V, in a third of the memory of 1F1B",
    placement="v",
    chunks_per_rank=2,
    min_chunks=2,
    max_chunks=2,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Qi et al., Pipeline Parallelism with Controllable Memory, 2024, arXiv 2405.15362, "
    "section 3",
)


@schedule_generator("v-min", FACTS)
def v_min(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """A microbatch goes down the V and back without a stop, so that nothing stays for long.

    Its next one follows six slots later; weight gradients take what slots are left::

        rank 0  0F0 0F1 0F2 .   .   .   .   7F0 7B0 7W0 7F1 7B1
        rank 1      1F0 1F1 .   .   .   6F0 .   6F1 6B0 6W0 1F2
        rank 2          2F0 2F1 .   5F0 .   5F1 .   .   5B0 5W0
        rank 3              3F0 4F0 3F1 4F1 .   .   .   .   4B0

    Where F, B and W differ in time, every microbatch leaves a bubble; it does not in `v-half`.

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: 2.

    Facts:
        from M = 2 P on: makespan in unit costs 6 M + 4 P - 5, 2 less where 3 divides P; in flight
        2 floor((P + 4) / 3) chunks, 2 less on every third rank where P is 2 more than a multiple
        of 3. Never more than that with fewer microbatches. 1F1B holds up to 2 P.

    Reference:
        Qi et al., Pipeline Parallelism with Controllable Memory, 2024, arXiv 2405.15362, section 3;
        the ends pulled together as the authors' program does. With fewer than 2 P microbatches the
        shorter of that and the schedule of 2 P without the last ones.

    Example:
        >>> v_min(2, 1).actions
        ((0F0, 3F0, 3B0, 3W0, 0B0, 0W0), (1F0, 2F0, 2B0, 1B0, 2W0, 1W0))
    """
    gap = 0 if ranks % 3 else 2  # where 3 divides P, backwards would meet forwards
    rows = v_rows(Offsets(1, 1, at_top=gap).blocks(ranks), microbatches)
    return Schedule(rows, Placement.v(ranks, chunks_per_rank), "v-min")
