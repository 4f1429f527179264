"""Chimera: two chains through the ranks, whose backwards fill each other's gaps."""

from __future__ import annotations

from ppframe.schedule.action import Action, ActionKind
from ppframe.schedule.bulk import computes
from ppframe.schedule.forward import alternating
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int:
    """Where a backward takes two forwards, every unit of P microbatches leaves gaps inside."""
    ranks, _, microbatches = shape
    return 3 * microbatches + (ranks - 2) * (microbatches // ranks + 1)


def _peak(shape: Shape) -> tuple[int, ...]:
    ranks = shape.ranks
    return tuple(ranks // 2 + 1 + min(rank, ranks - 1 - rank) for rank in range(ranks))


FACTS = ScheduleFacts(
    summary="two chains through the ranks in opposite directions fill each other's gaps; every "
    "rank holds two stages of one model that is there twice",
    placement="bidirectional",
    max_chunks=1,
    takes_ranks=lambda ranks: ranks % 2 == 0,
    takes_microbatches=lambda shape: shape.microbatches % shape.ranks == 0,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Li, Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks with "
    "Bidirectional Pipelines, 2021, arXiv 2107.06925, section 3.1",
)


@schedule_generator("chimera", FACTS)
def chimera(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
    """Even microbatches go down the ranks, odd ones up; both fill what the other leaves idle.

    Time goes in slots of one forward or one whole backward. A pair of microbatches sets out every
    second slot, one from each end, and turns back at the other: with an even number of ranks no two
    actions want a rank in the same slot. P microbatches make a unit, and units follow each other
    every 2 P slots.

    ::

        rank 0  0F0 0F2 .   3F1 3BW1 3F3  3BW3 0BW0 .    0BW2
        rank 1  .   1F0 2F1 1F2 2F3  2BW1 1BW0 2BW3 1BW2 .
        rank 2  .   1F1 2F0 1F3 2F2  2BW0 1BW1 2BW2 1BW3 .
        rank 3  0F1 0F3 .   3F0 3BW0 3F2  3BW2 0BW1 .    0BW3

    Args:
        ranks: pipeline ranks (P), even.
        microbatches: microbatches (M), a multiple of P.
        chunks_per_rank: 1; a rank holds that stage of either chain.

    Facts:
        makespan 3 M + (P - 2) (M / P + 1) in unit costs, and 2 M + P - 2 where a backward takes as
        long as a forward, which is a bubble of (P - 2) / (2 M + P - 2). On rank r in flight at
        most P / 2 + 1 + min(r, P - 1 - r).

    Reference:
        Li, Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional
        Pipelines, 2021, arXiv 2107.06925, section 3.1; units are put one after the other, without
        the doubling of forwards by which section 3.5 closes the gaps between them. Its chains take
        one half of the microbatches each; here they take turns, so that data is used in its order.

    Example:
        >>> chimera(2, 2).actions
        ((0F0, 1F1, 1BW1, 0BW0), (0F1, 1F0, 1BW0, 0BW1))
    """
    rows = tuple(_row(rank, ranks, microbatches) for rank in range(ranks))
    placement = Placement.loop(ranks, chunks_per_rank)
    return Schedule(rows, placement, "chimera", chains=alternating(microbatches))


def _row(rank: int, ranks: int, microbatches: int) -> tuple[Action, ...]:
    """The actions of a rank by slot: m sets out at its unit's start, two slots after m - 2."""
    stages = (rank, ranks - 1 - rank)
    pairs = [(stages[m % 2], m) for m in range(microbatches)]
    starts = [2 * ranks * (m // ranks) + m % ranks - m % 2 for m in range(microbatches)]
    slots: dict[int, Action] = {}
    for start, forward in zip(starts, computes(ActionKind.F, pairs), strict=True):
        slots[start + forward.stage] = forward
    for start, backward in zip(starts, computes(ActionKind.BW, pairs), strict=True):
        slots[start + 2 * ranks - 1 - backward.stage] = backward
    return tuple(slots[slot] for slot in sorted(slots))
