"""ZB-V: two stages of each rank in a V, without a bubble where all parts take the same time."""

from __future__ import annotations

from itertools import count

from ppframe.schedule.action import ActionKind, Compute
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.orders import counted, draw
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement

_KINDS = (ActionKind.F, ActionKind.B, ActionKind.W)


def _makespan(shape: Shape) -> int:
    """Where there are too few microbatches to fill the pipeline, the way of one is the longest."""
    ranks, _, microbatches = shape
    return 6 * microbatches + max(ranks - 1, 4 * (ranks - 1) - 2 * (microbatches - 1))


def _peak(shape: Shape) -> tuple[int, ...]:
    ranks, _, microbatches = shape
    most = 2 * min(ranks, microbatches)
    return tuple(min(most, microbatches + 1 + rank) for rank in range(ranks))


FACTS = ScheduleFacts(
    summary="two stages of each rank in a V: no bubble in the memory of 1F1B, at equal times",
    placement="v",
    chunks_per_rank=2,
    min_chunks=2,
    max_chunks=2,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 6; "
    "order of PyTorch, torch.distributed.pipelining, ScheduleZBVZeroBubble, 2024",
)


@schedule_generator("zbv", FACTS)
def zbv(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """The first and the last stage on the first rank, so that it sees a microbatch's turn first.

    A microbatch goes down the ranks by their first chunk and comes back by their second, so the
    first rank has forwards and backwards to start with as soon as the last one. Every rank is busy
    from its first action to its last where F, B and W take the same time, and the ranks hold
    equally much. Weight gradients run at once, but for those that fill the end.

    ::

        rank 0  0F0  0F1  0F2  3F0  3B0  3W0  3F1  3B1  3W1  0B0  ...
        rank 1       1F0  2F0  1F1  2F1  2B0  2W0  1F2  1B0  1W0  ...

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any; with fewer than 2 P - 1 what belongs to further ones is
            left out.
        chunks_per_rank: 2.

    Facts:
        makespan 6 M + P - 1 in unit costs, and for small M 4 M + 4 P - 2, whichever is longer; 2 P
        in flight on every rank from M = 2 P - 1 on, below min(2 M, 2 P, M + 1 + r). No bubble
        in the span of a rank.

    Reference:
        Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 6, where the
        order is searched for; this one, written by hand for equal times, is that of PyTorch,
        torch.distributed.pipelining, ScheduleZBVZeroBubble, 2024.

    Example:
        >>> zbv(2, 1).actions
        ((0F0, 3F0, 3B0, 3W0, 0B0, 0W0), (1F0, 2F0, 2B0, 2W0, 1B0, 1W0))
    """
    placement = Placement.v(ranks, chunks_per_rank)
    rows = (_row(rank, placement, microbatches) for rank in range(ranks))
    return Schedule(tuple(rows), placement, "zbv")


def _row(rank: int, placement: Placement, microbatches: int) -> tuple[Compute, ...]:
    """A rank's list: that of 2 P - 1 microbatches or more, without those that there aren't."""
    ranks, (there, back) = placement.ranks, placement.stages_of(rank)
    f0, b0, w0 = (counted(kind, there, count()) for kind in _KINDS)
    f1, b1, w1 = (counted(kind, back, count()) for kind in _KINDS)
    needed = max(2 * ranks - 1, microbatches)
    to_last = ranks - rank
    started = 2 * to_last - 1 + rank
    order = [
        *[f0] * (2 * to_last - 1),
        *[f1, f0] * rank,
        *[f1, b1, w1] * to_last,
        *[f0, b0, w0, f1, b1, w1] * (needed - started),
        *[b0, w0, f1, b1, w1] * (started - ranks),
        *[b0, b1] * rank,
        *[b0, w0] * to_last,
        *[w1] * rank,
        *[w0] * rank,
    ]
    return tuple(action for action in draw(order) if action.microbatch < microbatches)
