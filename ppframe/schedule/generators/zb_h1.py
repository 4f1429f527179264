"""ZB-H1: 1F1B with the backward split, so that weight gradients fill the end of the step."""

from __future__ import annotations

from ppframe.schedule.action import ActionKind
from ppframe.schedule.bulk import computes
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.orders import one_forward_one_split_backward
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def makespan(shape: Shape, *, per_hop: int) -> int:
    """Unit costs; where there are too few microbatches to fill the pipeline, the wait for more."""
    ranks, _, microbatches = shape
    missing = max(0, per_hop * (ranks - 1) + 1 - microbatches)
    return 3 * microbatches + ranks - 1 + missing // per_hop


def peak_in_flight(shape: Shape, *, per_hop: int) -> tuple[int, ...]:
    """The warm-up, what the weight gradients lag behind, and one: the same on every rank."""
    most = per_hop * (shape.ranks - 1) + 1
    return (min(shape.microbatches, most),) * shape.ranks


def handcrafted(placement: Placement, microbatches: int, *, per_hop: int, name: str) -> Schedule:
    """The paper's rule: 1F1B with B in place of BW, and W behind.

    Args:
        placement: a stage on each rank.
        microbatches: microbatches (M).
        per_hop: warm-up forwards for each hop to the last rank; as many backwards for each hop to
            the first rank do the weight gradients lag behind.
        name: what the schedule is called.
    """
    ranks, rows = placement.ranks, []
    for rank in range(ranks):
        pairs = [(rank, microbatch) for microbatch in range(microbatches)]
        warmup = min(microbatches, per_hop * (ranks - 1 - rank))
        forwards = computes(ActionKind.F, pairs)
        rows.append(one_forward_one_split_backward(forwards, pairs, warmup, per_hop * rank))
    return Schedule(tuple(rows), placement, name)


FACTS = ScheduleFacts(
    summary="1F1B with a split backward: a third of the bubble in the same memory",
    placement="loop",
    max_chunks=1,
    makespan=lambda shape: makespan(shape, per_hop=1),
    peak_in_flight=lambda shape: peak_in_flight(shape, per_hop=1),
    reference="Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 2.1",
)


@schedule_generator("zb-h1", FACTS)
def zb_h1(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
    """1F1B in which the gradient for the input goes on at once, and the one for the weights waits.

    Rank r starts as in 1F1B. Its weight gradients lag r backwards behind, so all ranks hold as
    many microbatches as the first rank of 1F1B does; at the end they have work left while the last
    input gradients travel.

    ::

        rank 0  F0 F1 F2 .  .  B0 W0 F3 B1 W1 F4 B2 W2 B3 W3 B4 W4
        rank 1     F0 F1 .  B0 F2 B1 W0 F3 B2 W1 F4 B3 W2 B4 W3 W4
        rank 2        F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 F4 B4 W2 W3 W4

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: 1; for more see `interleaved-zb`.

    Facts:
        makespan 3 M + P - 1 in unit costs, and P - M more where M < P; min(M, P) in flight on every
        rank, of which rank r keeps r for the weights only. Where W takes no longer than F and B,
        the bubble is (P - 1) (F + B - W); short hops of c add 4 (P - 1) c.

    Reference:
        Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 2.1, for
        M ≥ P. With fewer, weight gradients lag no further behind than with many.

    Example:
        >>> zb_h1(2, 2).actions
        ((0F0, 0F1, 0B0, 0W0, 0B1, 0W1), (1F0, 1B0, 1F1, 1B1, 1W0, 1W1))
    """
    placement = Placement.loop(ranks, chunks_per_rank)
    return handcrafted(placement, microbatches, per_hop=1, name="zb-h1")
