"""dora-dfs: depth first, one forward, one backward whose two parts run as one."""

from __future__ import annotations

from dataclasses import replace

from ppframe.schedule.generators.facts import ScheduleFacts, schedule_generator
from ppframe.schedule.generators.interleaved_1f1b import (
    interleaved_1f1b,
    makespan,
    peak_in_flight,
)
from ppframe.schedule.ir import Schedule

FACTS = ScheduleFacts(
    summary="depth first over several stages of each rank, backward parts merged",
    placement="loop",
    chunks_per_rank=2,
    makespan=makespan,
    peak_in_flight=peak_in_flight,
    reference="torchmonarch, parallel/pipelining, 2025; with the two backward parts of a "
    "microbatch merged it is interleaved 1F1B",
)


@schedule_generator("dora-dfs", FACTS)
def dora_dfs(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """Depth first: a group of microbatches through all chunks, one forward, one backward.

    Both backward parts of a microbatch follow each other, so they run as one, and the schedule is
    interleaved 1F1B by another way.

    ::

        F F B W F B W ...  →  F F BW F BW ...

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: stages of each rank (V), any.

    Facts:
        those of `interleaved-1f1b`.

    Reference:
        torchmonarch, parallel/pipelining, 2025, where it is the default; there max(1, M div P) must
        divide M.

    Example:
        >>> dora_dfs(1, 2).actions
        ((0F0, 1F0, 1BW0, 0F1, 0BW0, 1F1, 1BW1, 0BW1),)
    """
    return replace(interleaved_1f1b(ranks, microbatches, chunks_per_rank), name="dora-dfs")
