"""1F1B: as soon as a backward can run, one forward and one backward in turn."""

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
    return tuple(min(shape.microbatches, shape.ranks - rank) for rank in range(shape.ranks))


FACTS = ScheduleFacts(
    summary="one forward, one backward; as many microbatches in flight as ranks to come",
    placement="loop",
    max_chunks=1,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021, "
    "arXiv 2006.09503 (PipeDream-Flush)",
)


@schedule_generator("1f1b", FACTS)
def one_f_one_b(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
    """A forward and a backward in turn, so that few microbatches are in flight.

    ::

        rank 0  F0 F1 F2 F3 .  .  .  BW0 F4 BW1 F5 ...
        rank 1     F0 F1 F2 .  BW0 .  F3 BW1 ...
        rank 2        F0 F1 BW0 ...
        rank 3           F0 BW0 F1 BW1 ...

    Args:
        ranks: pipeline ranks (P).
        microbatches: microbatches (M).
        chunks_per_rank: 1.

    Facts:
        makespan 3 (M + P - 1); in flight at most min(M, P - r) on rank r; any P and M.

    Reference:
        Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021, arXiv 2006.09503.
    """
    rows = []
    for rank in range(ranks):
        pairs = [(rank, microbatch) for microbatch in range(microbatches)]
        warmup = min(microbatches, ranks - 1 - rank)
        forwards, backwards = computes(ActionKind.F, pairs), computes(ActionKind.BW, pairs)
        rows.append(one_forward_one_backward(forwards, backwards, warmup))
    return Schedule(tuple(rows), Placement.loop(ranks, chunks_per_rank), "1f1b")
