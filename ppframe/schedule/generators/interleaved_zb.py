"""Interleaved zero bubble: ZB-H1 over several stages of each rank."""

from __future__ import annotations

from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.orders import (
    group_sizes,
    split_depth_first,
    wait_of_small_groups,
)
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int:
    ranks, chunks, microbatches = shape
    size = group_sizes(ranks, microbatches)[0]
    bubble = ranks - 1 + max(0, ranks - size) + wait_of_small_groups(ranks, chunks, size)
    return 3 * microbatches * chunks + bubble


def _peak(shape: Shape) -> tuple[int, ...]:
    ranks, chunks, microbatches = shape
    size = group_sizes(ranks, microbatches)[0]
    return (min(chunks * microbatches, (chunks - 1) * size + ranks),) * ranks


FACTS = ScheduleFacts(
    summary="ZB-H1 over several stages of each rank: a bubble of P - 1 whatever V",
    placement="loop",
    chunks_per_rank=2,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="PyTorch, torch.distributed.pipelining, ScheduleInterleavedZeroBubble, 2024, after "
    "Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 2.1",
)


@schedule_generator("interleaved-zb", FACTS)
def interleaved_zb(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """The order of `interleaved-1f1b` with a split backward, warmed up as briefly as `zb-h1`.

    Rank r's weight gradients lag r backwards behind.

    ::

        rank 0  0F0  0F1  2F0  2F1  .    2B0  2W0  2B1  2W1  0B0  0W0  0B1  0W1
        rank 1       1F0  1F1  3F0  3B0  3F1  3B1  3W0  1B0  3W1  1B1  1W0  1W1

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any; where max(1, M div P) doesn't divide M, the first
            groups are larger by one.
        chunks_per_rank: stages of each rank (V), any.

    Facts:
        makespan 3 M V + P - 1 in unit costs for M ≥ P, and what small groups wait for one another
        for fewer; at most min(M V, (V - 1) g + P) in flight on every rank, with groups of g, of
        which rank r keeps r for the weights only. The bubble is (P - 1) (F + B - W) where F, B and
        W of a stage take the same time.

    Reference:
        PyTorch, torch.distributed.pipelining, ScheduleInterleavedZeroBubble, 2024, which refuses an
        M that its groups don't divide; after Qi et al., Zero Bubble Pipeline Parallelism, 2023,
        arXiv 2401.10241, section 2.1.

    Example:
        >>> interleaved_zb(2, 1).actions
        ((0F0, 2F0, 2B0, 2W0, 0B0, 0W0), (1F0, 3F0, 3B0, 1B0, 3W0, 1W0))
    """
    placement = Placement.loop(ranks, chunks_per_rank)
    rows = split_depth_first(placement, group_sizes(ranks, microbatches), range(ranks))
    return Schedule(rows, placement, "interleaved-zb")
