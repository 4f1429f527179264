"""ZB-1p: found by search, in the memory of 1F1B."""

from __future__ import annotations

from ppframe.schedule.cost import Cost
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.zb_search import makespan, search
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _peak(shape: Shape) -> tuple[int, ...]:
    return (min(shape.microbatches, shape.ranks),) * shape.ranks


FACTS = ScheduleFacts(
    summary="searched for the given costs, weight gradients fill gaps, in the memory of 1F1B",
    placement="loop",
    max_chunks=1,
    makespan=makespan,
    peak_in_flight=_peak,
    reference="Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 3.1",
)


@schedule_generator("zb-1p", FACTS)
def zb_1p(
    ranks: int,
    microbatches: int,
    chunks_per_rank: int = 1,
    *,
    cost: Cost | None = None,
    memory_limit: float | None = None,
) -> Schedule:
    """Forwards until the first backward comes, then one of each in turn, weights in the gaps.

    A greedy pass makes a schedule for the times, latencies and memory that it is given; eight of
    them differ in how eager they are, and the one whose longest span (of a rank, from its first
    start to its last end) is least is kept.

    ::

        rank 0  F0 F1 F2 F3 .  .  .  B0 W0 F4 B1 W1 F5 B2 W2
        rank 1     F0 F1 F2 .  .  B0 F3 B1 W0 F4 B2 W1 F5 B3
        rank 2        F0 F1 .  B0 F2 B1 F3 B2 W0 F4 B3 W1 F5
        rank 3           F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: 1.
        cost: times of the stages, latency of hops, share of an activation that W needs; None is
            one unit for F, B and W each.
        memory_limit: the most that a rank may hold, in activations of one microbatch on one rank,
            1 or more; None is for P microbatches in flight.

    Raises:
        ConfigError: one microbatch takes more than the limit, or the cost is for another number of
            stages.

    Facts:
        without options, makespan in unit costs 3 M + P - 1, and P - M more where M < P; in flight
        min(M, P). With them, what the search finds: never more than the limit, where memory is
        counted as the papers do (B frees all but the share that W needs).

    Reference:
        Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 3.1. Gives the
        bubble rates of its Table 5. Ranks below a rank that has run all forwards in its warm-up may
        do so too, so that few microbatches (M < P) don't wait for each other.

    Example:
        >>> zb_1p(2, 2).actions
        ((0F0, 0F1, 0B0, 0W0, 0B1, 0W1), (1F0, 1B0, 1F1, 1B1, 1W0, 1W1))
    """
    rows = search(ranks, microbatches, cost, memory_limit, in_flight=ranks)
    return Schedule(rows, Placement.loop(ranks, chunks_per_rank), "zb-1p")
