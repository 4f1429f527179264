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

        rank 0  F0  F1  F2  F3  .   .   .   BW0 F4  BW1 F5  BW2
        rank 1      F0  F1  F2  .   .   BW0 F3  BW1 F4  BW2
        rank 2          F0  F1  .   BW0 F2  BW1 F3  BW2
        rank 3              F0  BW0 F1  BW1 F2  BW2

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: 1; for more see `interleaved-1f1b`.

    Facts:
        makespan 3 (M + P - 1) in unit costs; in flight at most min(M, P - r) on rank r.

    Reference:
        Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021, arXiv 2006.09503
        (PipeDream-Flush); the same as DAPPLE, arXiv 2007.01045. torch's schedule of this name
        lists the steady state of a rank without its last warm-up forward.

    Example:
        >>> one_f_one_b(2, 2).actions
        ((0F0, 0F1, 0BW0, 0BW1), (1F0, 1BW0, 1F1, 1BW1))
    """
    rows = []
    for rank in range(ranks):
        pairs = [(rank, microbatch) for microbatch in range(microbatches)]
        warmup = min(microbatches, ranks - 1 - rank)
        forwards, backwards = computes(ActionKind.F, pairs), computes(ActionKind.BW, pairs)
        rows.append(one_forward_one_backward(forwards, backwards, warmup))
    return Schedule(tuple(rows), Placement.loop(ranks, chunks_per_rank), "1f1b")
