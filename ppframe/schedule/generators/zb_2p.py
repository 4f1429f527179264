"""ZB-2p: found by search, in twice the memory of 1F1B."""

from __future__ import annotations

from ppframe.schedule.cost import Cost
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.zb_search import makespan, search
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _peak(shape: Shape) -> tuple[int, ...]:
    return (min(shape.microbatches, 2 * shape.ranks),) * shape.ranks


FACTS = ScheduleFacts(
    summary="searched for the given costs, hardly a bubble between a rank's ends, twice the memory",
    placement="loop",
    max_chunks=1,
    makespan=makespan,
    peak_in_flight=_peak,
    reference="Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 3.1",
)


@schedule_generator("zb-2p", FACTS)
def zb_2p(
    ranks: int,
    microbatches: int,
    chunks_per_rank: int = 1,
    *,
    cost: Cost | None = None,
    memory_limit: float | None = None,
) -> Schedule:
    """The search of `zb-1p` with twice the memory: ranks hardly wait once they have started.

    ::

        rank 0  F0 F1 F2 F3 F4 F5 F6 B0 F7 W0 B1 W1
        rank 1     F0 F1 F2 F3 F4 B0 F5 B1 F6 B2 F7
        rank 2        F0 F1 F2 B0 F3 B1 F4 B2 F5 B3
        rank 3           F0 B0 F1 B1 F2 B2 F3 B3 F4

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any; from 2 P - 1 on for its full effect.
        chunks_per_rank: 1.
        cost: times of the stages, latency of hops, share of an activation that W needs; None is
            one unit for F, B and W each.
        memory_limit: the most that a rank may hold, in activations of one microbatch on one rank,
            1 or more; None is for 2 P microbatches in flight.

    Raises:
        ConfigError: one microbatch takes more than the limit, or the cost is for another number of
            stages.

    Facts:
        without options, makespan in unit costs 3 M + P - 1, and P - M more where M < P; in flight
        min(M, 2 P); no rank waits between its ends from M = 2 P - 1 on. With options as `zb-1p`.

    Reference:
        Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 3.1, with the
        difference that `zb-1p` states. Gives the bubble rates of its Table 5.

    Example:
        >>> zb_2p(2, 3).actions[0]
        (0F0, 0F1, 0F2, 0B0, 0W0, 0B1, 0W1, 0B2, 0W2)
    """
    rows = search(ranks, microbatches, cost, memory_limit, in_flight=2 * ranks)
    return Schedule(rows, Placement.loop(ranks, chunks_per_rank), "zb-2p")
