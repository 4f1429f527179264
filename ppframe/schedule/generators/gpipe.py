"""GPipe: all forwards, then all backwards."""

from __future__ import annotations

from ppframe.schedule.action import ActionKind
from ppframe.schedule.bulk import computes
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int:
    return 3 * (shape.microbatches + shape.ranks - 1)


def _peak(shape: Shape) -> tuple[int, ...]:
    return (shape.microbatches,) * shape.ranks


FACTS = ScheduleFacts(
    summary="all forwards, then all backwards; every microbatch is in flight at once",
    placement="loop",
    max_chunks=1,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Huang et al., GPipe, 2019, arXiv 1811.06965, section 2.3",
)


@schedule_generator("gpipe", FACTS)
def gpipe(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
    """All forwards, then all backwards.

    ::

        rank 0  F0 F1 F2 F3 .  .  .  .        BW0 BW1 BW2 BW3
        rank 1     F0 F1 F2 F3 .  .     BW0 BW1 BW2 BW3
        rank 2        F0 F1 F2 F3  BW0 BW1 BW2 BW3

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: 1; for more see `looped-bfs`.

    Facts:
        makespan 3 (M + P - 1) in unit costs; M in flight on every rank.

    Reference:
        Huang et al., GPipe, 2019, arXiv 1811.06965, section 2.3. Its figure runs the backwards from
        the last microbatch down; here they run from 0 up, which takes the same time.

    Example:
        >>> gpipe(1, 2).actions
        ((0F0, 0F1, 0BW0, 0BW1),)
    """
    rows = []
    for rank in range(ranks):
        pairs = [(rank, microbatch) for microbatch in range(microbatches)]
        rows.append((*computes(ActionKind.F, pairs), *computes(ActionKind.BW, pairs)))
    return Schedule(tuple(rows), Placement.loop(ranks, chunks_per_rank), "gpipe")
