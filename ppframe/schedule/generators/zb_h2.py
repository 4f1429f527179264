"""ZB-H2: twice the warm-up of ZB-H1, so that no rank idles between its first and last action."""

from __future__ import annotations

from ppframe.schedule.generators.facts import ScheduleFacts, schedule_generator
from ppframe.schedule.generators.zb_h1 import handcrafted, makespan, peak_in_flight
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement

FACTS = ScheduleFacts(
    summary="no bubble between a rank's first and last action, in twice the memory",
    placement="loop",
    max_chunks=1,
    makespan=lambda shape: makespan(shape, per_hop=2),
    peak_in_flight=lambda shape: peak_in_flight(shape, per_hop=2),
    reference="Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 2.2",
)


@schedule_generator("zb-h2", FACTS)
def zb_h2(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
    """`zb-h1` with two warm-up forwards for each hop, and weight gradients twice as far behind.

    Where F, B and W take the same time, a rank has something to do from its first action to its
    last; they make a parallelogram.

    ::

        rank 0  F0 F1 F2 F3 F4 B0 W0 F5 B1 W1 B2 W2 B3 W3 B4 W4 B5 W5
        rank 1     F0 F1 F2 B0 F3 B1 F4 B2 W0 F5 B3 W1 B4 W2 B5 W3 W4 W5
        rank 2        F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 W0 F5 B5 W1 W2 W3 W4 W5

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: 1.

    Facts:
        makespan 3 M + P - 1 in unit costs, and (2 P - 1 - M) div 2 more where M < 2 P - 1; at most
        min(M, 2 P - 1) in flight on every rank, of which rank r keeps 2 r for the weights only.
        Where W takes no longer than F and B, the longest span of a rank has a bubble of
        (P - 1) (F + B - 2 W + 2 c) with short hops of c, and the makespan one of (P - 1) (F + c)
        where that is more, for the last rank starts later.

    Reference:
        Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 2.2, for
        M ≥ 2 P - 1. With fewer, weight gradients lag no further behind than with many.

    Example:
        >>> zb_h2(2, 3).actions[1]
        (1F0, 1B0, 1F1, 1B1, 1F2, 1B2, 1W0, 1W1, 1W2)
    """
    placement = Placement.loop(ranks, chunks_per_rank)
    return handcrafted(placement, microbatches, per_hop=2, name="zb-h2")
