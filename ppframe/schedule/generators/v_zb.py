"""V-ZB: no bubble between the ends of a rank, in the memory of 1F1B."""

from __future__ import annotations

import math

from ppframe.errors import ConfigError
from ppframe.schedule.cost import Cost
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.v_blocks import v_rows
from ppframe.schedule.generators.v_offsets import Offsets, best_within
from ppframe.schedule.generators.v_search import v_search
from ppframe.schedule.generators.zb_search import Times
from ppframe.schedule.generators.zbv import zbv
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement
from ppframe.schedule.rows import Rows


def _makespan(shape: Shape) -> int | None:
    ranks, _, microbatches = shape
    if microbatches < 2 * ranks:
        return None
    return 6 * microbatches + ranks - 1


def _peak(shape: Shape) -> tuple[int, ...] | None:
    ranks, _, microbatches = shape
    if microbatches < 2 * ranks:
        return None
    return (2 * ranks,) * ranks


BLOCK = Offsets(down=4, back=2)

FACTS = ScheduleFacts(
    summary="two stages of each rank in a V, no bubble between the ends of a rank, memory as 1F1B",
    placement="v",
    chunks_per_rank=2,
    min_chunks=2,
    max_chunks=2,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="Qi et al., Pipeline Parallelism with Controllable Memory, 2024, arXiv 2405.15362, "
    "section 3",
)


@schedule_generator("v-zb", FACTS)
def v_zb(
    ranks: int,
    microbatches: int,
    chunks_per_rank: int = 2,
    *,
    cost: Cost | None = None,
    memory_limit: float | None = None,
) -> Schedule:
    """A microbatch takes every fourth slot down the V and every other one back.

    Each rank comes by its first four actions of a microbatch in four slots in a row, so all ranks
    hold equally much, and nobody waits once started::

        rank 0  0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 7B0 7W0 7F1 7B1
        rank 1      1F0 1F1 1F2 1F3 1F4 6F0 1F5 6F1 6B0 6W0 6F2
        rank 2          2F0 2F1 2F2 5F0 2F3 5F1 2F4 5F2 5B0 5W0
        rank 3              3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 4B0

    With options the order is searched instead: of four greedy passes with the given times,
    latencies and memory, of this block and of `zbv` the one whose longest span (of a rank, from its
    first start to its last end) is least. A limit below P stops most passes: then the best of
    the other blocks that keep it is taken, `v-half` and `v-min` among them.

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: 2.
        cost: times of the 2 P stages, latency of hops, share of an activation that W needs; None is
            one unit for F, B and W each.
        memory_limit: the most that a rank may hold, in activations of one microbatch on both stages
            of a rank, floor((P + 4) / 3) or more; None is for P of them in flight.

    Raises:
        ConfigError: the limit is below what `v-min` holds, or the cost is for another number of
            stages.

    Facts:
        without options from M = 2 P on: makespan in unit costs 6 M + P - 1, which is what the ranks
        start one after the other; in flight 2 P chunks, never more with fewer microbatches. 1F1B
        holds up to 2 P. With options what the search finds.

    Reference:
        Qi et al., Pipeline Parallelism with Controllable Memory, 2024, arXiv 2405.15362, section 3,
        for the block; its ends are pulled together as the authors' program does. With fewer than
        2 P microbatches the shorter of that and the schedule of 2 P without the last ones. The
        passes are after Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241,
        section 6: two of them give the bubble rates of ZB-V in Table 8, all of them the same or
        less.

    Example:
        >>> v_zb(2, 1).actions
        ((0F0, 3F0, 3B0, 3W0, 0B0, 0W0), (1F0, 2F0, 2B0, 1B0, 2W0, 1W0))
    """
    if cost is None and memory_limit is None:
        rows = v_rows(BLOCK.blocks(ranks), microbatches)
    else:
        rows = _searched(ranks, microbatches, cost, memory_limit)
    return Schedule(rows, Placement.v(ranks, chunks_per_rank), "v-zb")


def _searched(ranks: int, microbatches: int, cost: Cost | None, limit: float | None) -> Rows:
    """The best of the search, and of the fixed orders of the V that keep the limit."""
    most = Times.of(cost, 2 * ranks).most_kept
    if limit is None or limit >= ranks * most:
        block = v_rows(BLOCK.blocks(ranks), microbatches)
        others = [block, zbv(ranks, microbatches).actions]
        return v_search(microbatches, cost, limit or ranks + (most - 1) / 2, others)
    least = (ranks + 4) // 3 * most
    if not limit >= least:
        enough = f"{math.ceil(1e4 * least) / 1e4:g}"
        raise ConfigError(
            f"must be at least {enough} microbatches' activations on a rank, which is what `v-min` "
            f"holds, but is {limit} (ranks {ranks}, microbatches {microbatches}). Use {enough} or "
            "more.",
            path="schedule.memory_limit",
        )
    others = [best_within(ranks, microbatches, cost, limit)]
    return v_search(microbatches, cost, limit, others)
