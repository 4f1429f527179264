"""Interleaved 1F1B: one forward, one backward, over several stages of each rank."""

from __future__ import annotations

from ppframe.schedule.action import ActionKind
from ppframe.schedule.bulk import computes
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.orders import (
    depth_first,
    group_sizes,
    interleaved_warmup,
    one_forward_one_backward,
)
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def makespan(shape: Shape) -> int | None:
    """Unit costs; a closed form is known where the groups are of P microbatches, or V is 1."""
    ranks, chunks, microbatches = shape
    if microbatches % ranks and chunks > 1:
        return None
    return 3 * (microbatches * chunks + ranks - 1)


def peak_in_flight(shape: Shape) -> tuple[int, ...]:
    """The warm-up and the forward that follows it."""
    ranks, chunks, microbatches = shape
    sizes = group_sizes(ranks, microbatches)
    total = chunks * microbatches
    warmups = (interleaved_warmup(rank, ranks, chunks, sizes) for rank in range(ranks))
    return tuple(min(total, warmup + 1) for warmup in warmups)


FACTS = ScheduleFacts(
    summary="one forward, one backward over several stages of each rank, microbatches in groups",
    placement="loop",
    chunks_per_rank=2,
    makespan=makespan,
    peak_in_flight=peak_in_flight,
    reference="Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters "
    "Using Megatron-LM, 2021, arXiv 2104.04473, section 2.2",
)


@schedule_generator("interleaved-1f1b", FACTS)
def interleaved_1f1b(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """A rank's stages take turns, so that the pipeline fills and drains in a V-th of the time.

    Microbatches go in groups of about P: a group through the rank's first chunk, then through its
    second, and so on. Backwards take the chunks from the last one down. A rank runs the forwards of
    a first group on all chunks but one, and two for each hop to the last rank; then a forward and
    a backward in turn.

    ::

        rank 0  0F0  0F1  2F0  2F1  .    2BW0 .    2BW1 0BW0 0BW1
        rank 1       1F0  1F1  3F0  3BW0 3F1  3BW1 1BW0 1BW1

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any; where max(1, M div P) doesn't divide M, the first
            groups are larger by one.
        chunks_per_rank: stages of each rank (V), any.

    Facts:
        makespan 3 (M V + P - 1) in unit costs where P divides M; in flight at most
        (V - 1) g + 2 (P - 1 - r) + 1 on rank r, with groups of g, and no more than M V.

    Reference:
        Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM, 2021, arXiv 2104.04473, section 2.2, where P divides M; groups of another size
        as in torch, which refuses an M that they don't divide.

    Example:
        >>> interleaved_1f1b(2, 1).actions
        ((0F0, 2F0, 2BW0, 0BW0), (1F0, 3F0, 3BW0, 1BW0))
    """
    placement = Placement.loop(ranks, chunks_per_rank)
    sizes = group_sizes(ranks, microbatches)
    rows = []
    for rank in range(ranks):
        stages = placement.stages_of(rank)
        forwards = computes(ActionKind.F, depth_first(stages, sizes))
        backwards = computes(ActionKind.BW, depth_first(stages[::-1], sizes))
        warmup = interleaved_warmup(rank, ranks, chunks_per_rank, sizes)
        rows.append(one_forward_one_backward(forwards, backwards, warmup))
    return Schedule(tuple(rows), placement, "interleaved-1f1b")
