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
    """The reference runtime's default schedule."""
    return replace(interleaved_1f1b(ranks, microbatches, chunks_per_rank), name="dora-dfs")
