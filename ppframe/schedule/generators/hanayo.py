"""Hanayo: waves of microbatches that go up and down the ranks several times."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from operator import itemgetter
from typing import Any

from ppframe.errors import ConfigError
from ppframe.schedule.action import ActionKind, Compute
from ppframe.schedule.bulk import computes
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int:
    """Whole groups of P microbatches, then the last one; each next microbatch comes 4 later."""
    ranks, chunks, microbatches = shape
    groups, last = divmod(microbatches - 1, ranks)
    way = 3 * chunks * ranks
    shorter = 1 if groups and last + 1 < ranks else 0
    return groups * (way + 2 * (ranks - 1)) + way + 4 * last - shorter


def _peak(shape: Shape) -> tuple[int, ...]:
    """All of a group, less the backwards that run before its last forward comes round."""
    ranks, chunks, microbatches = shape
    group = min(ranks, microbatches)
    return tuple(chunks * group - max(0, group - 1 - rank) for rank in range(ranks))


def _chunks_of(options: Mapping[str, Any]) -> int | None:
    waves = options.get("waves")
    if waves is None:
        return None
    if type(waves) is not int or waves < 1:
        raise ConfigError(
            f"must be a whole number from 1, but is {waves!r}.", path="schedule.waves"
        )
    return 2 * waves


FACTS = ScheduleFacts(
    summary="microbatches go up and down the ranks in several waves; P of them are in flight",
    placement="wave",
    chunks_per_rank=2,
    min_chunks=2,
    chunks_step=2,
    chunks_of=_chunks_of,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Liu et al., Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large "
    "Model Training Efficiency, 2023, arXiv 2308.15762, section 3",
)


@schedule_generator("hanayo", FACTS)
def hanayo(
    ranks: int, microbatches: int, chunks_per_rank: int = 2, *, waves: int | None = None
) -> Schedule:
    """A wave is a way down the ranks and back; a microbatch makes several, forwards and backwards.

    One wave is Chimera without its second copy of the parameters: what its two directions are, the
    way down and the way back are here. Groups of P microbatches follow each other, a microbatch
    every second slot, so that the way down has the even slots of a rank and the way back the odd
    ones, or the other way round, and no two ever meet. More waves fill the pipeline in a shorter
    part of the step.

    ::

        rank 0  0F0 .   0F1 3F0 3BW0 3F1  3BW1 0BW0 .    0BW1
        rank 1      1F0 2F0 1F1 2F1  2BW0 1BW0 2BW1 1BW1

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any; a last group may be smaller.
        chunks_per_rank: stages of each rank (V), any even number: two for each wave.
        waves: V / 2; None takes it from V, and where that is not given either, 1.

    Raises:
        ConfigError: `waves` is no whole number from 1, or V is not twice as many.

    Facts:
        makespan 3 V P + 4 (P - 1) in unit costs for M = P, and 3 V P + 2 (P - 1) more for each
        group of P that follows; in flight at most V P - (P - 1 - r) on rank r. Where BW takes as
        long as F, the bubble is (P - 1) (F + BW) for however many whole groups.

    Reference:
        Liu et al., Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large Model
        Training Efficiency, 2023, arXiv 2308.15762, section 3, for M = P; the paper gives no rule
        for the order, which is Chimera's here (Li and Hoefler, 2021, arXiv 2107.06925, section 3),
        also for the groups that follow.

    Example:
        >>> hanayo(2, 1).actions
        ((0F0, 3F0, 3BW0, 0BW0), (1F0, 2F0, 2BW0, 1BW0))
    """
    if waves is not None and chunks_per_rank != 2 * waves:
        raise ConfigError(
            f"must be {2 * waves} for `hanayo` of {waves} waves, two for each, but is "
            f"{chunks_per_rank}. Leave it out, or use waves {chunks_per_rank // 2}.",
            path="chunks_per_rank",
        )
    placement = Placement.v(ranks, chunks_per_rank)
    rows = (_row(placement.stages_of(rank), placement, microbatches) for rank in range(ranks))
    return Schedule(tuple(rows), placement, "hanayo")


def _row(stages: tuple[int, ...], placement: Placement, microbatches: int) -> tuple[Compute, ...]:
    """A rank's actions, by the slots in which they stand: no two have the same."""
    period = 2 * placement.num_stages
    starts = [
        group * period + 2 * index
        for group, index in (divmod(i, placement.ranks) for i in range(microbatches))
    ]
    slots: list[int] = []
    actions: list[Compute] = []
    for stage in stages:
        pairs = [(stage, microbatch) for microbatch in range(microbatches)]
        forward, backward = stage, period - 1 - stage
        slots += [start + forward for start in starts]
        slots += [start + backward for start in starts]
        actions += chain(computes(ActionKind.F, pairs), computes(ActionKind.BW, pairs))
    return tuple(map(itemgetter(1), sorted(zip(slots, actions, strict=True), key=itemgetter(0))))
