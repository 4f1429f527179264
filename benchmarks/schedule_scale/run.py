"""CPU time to build, lower and verify schedules, beside torch's construction of the same one.

    python benchmarks/schedule_scale/run.py          # about two minutes
    python benchmarks/schedule_scale/run.py --full   # torch at the largest size too

Prints three tables: both on sizes that torch does in seconds, interleaved in one process; ours on
large sizes, where the number of microbatches doubles from row to row; every schedule of ours at the
largest size that torch is measured on, with the simulation of the lowered form.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace

from torch.distributed.pipelining import schedules as torch_schedules

from ppframe.registry import names
from ppframe.schedule import (
    build_schedule,
    lower,
    nearest_microbatches,
    schedule_facts,
    verify,
)
from ppframe.simulator import simulate

NAME = "interleaved-1f1b"
RANKS, CHUNKS = 64, 2
BESIDE_TORCH = ((8, 64), (16, 64), (16, 128), (32, 128))
LARGE = (256, 512, 1024, 2048)
FULL = (64, 1024)


def ours(ranks: int, microbatches: int, name: str = NAME) -> float:
    """Seconds of CPU for build, lower and verify of the lowered form."""

    def construct() -> None:
        verify(lower(build_schedule(name, ranks, microbatches, chunks_per_rank=CHUNKS)))

    return cpu_seconds(construct)


def theirs(ranks: int, microbatches: int) -> float:
    """Seconds of CPU for what torch's schedule does when it is made, on every process."""
    rounds = max(1, microbatches // ranks)

    def construct() -> None:
        order = {}
        for rank in range(ranks):
            stand_in = SimpleNamespace(
                rank=rank,
                pp_group_size=ranks,
                n_local_stages=CHUNKS,
                number_of_rounds=rounds,
                microbatches_per_round=microbatches // rounds,
                _n_microbatches=microbatches,
            )
            generate = torch_schedules.ScheduleInterleaved1F1B._calculate_single_rank_operations
            order[rank] = generate(stand_in, rank)
        stages = ranks * CHUNKS
        owners = torch_schedules._validate_schedule(order, ranks, stages, microbatches)
        for rank, actions in order.items():
            sharded = torch_schedules._add_unshard_reshard(actions)
            order[rank] = torch_schedules._add_reduce_grad(sharded, microbatches)
        torch_schedules._add_send_recv(order, lambda stage: owners[stage], stages)

    return cpu_seconds(construct)


def cpu_seconds(construct: Callable[[], None]) -> float:
    """CPU time of this process: what others do on the machine at the same time counts less."""
    gc.collect()
    start = time.process_time()
    construct()
    return time.process_time() - start


def beside_torch(sizes: tuple[tuple[int, int], ...], rounds: int) -> None:
    print("\n| ranks | microbatches | ppframe s | torch s | ratio |\n|---|---|---|---|---|")
    for ranks, microbatches in sizes:
        pairs = [(ours(ranks, microbatches), theirs(ranks, microbatches)) for _ in range(rounds)]
        mine, other = (min(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(ours_ / theirs_ for ours_, theirs_ in pairs)
        print(f"| {ranks} | {microbatches} | {mine:.3f} | {other:.2f} | {ratio:.3f} |", flush=True)


def large(rounds: int) -> None:
    print("\n| microbatches | computations | interleaved-1f1b s | dora-dfs s | to the row before |")
    print("|---|---|---|---|---|")
    before = 0.0
    for microbatches in LARGE:
        chunks = 2 * RANKS * CHUNKS * microbatches
        times = [ours(RANKS, microbatches, "dora-dfs") for _ in range(rounds)]
        interleaved = min(ours(RANKS, microbatches) for _ in range(rounds))
        growth = f"{min(times) / before:.2f}" if before else ""
        before = min(times)
        print(
            f"| {microbatches} | {chunks} | {interleaved:.2f} | {before:.2f} | {growth} |",
            flush=True,
        )


def every_schedule() -> None:
    ranks, microbatches = FULL
    print("\n| schedule | chunks | build s | lower, verify s | simulate s | together s |")
    print("|---|---|---|---|---|---|")
    for name in names("schedule"):
        facts = schedule_facts(name)
        if facts is None:
            continue
        chunks = facts.chunks_per_rank
        near = nearest_microbatches(name, ranks, microbatches, chunks)
        marks = [time.process_time()]
        schedule = build_schedule(name, ranks, near, chunks_per_rank=chunks)
        marks.append(time.process_time())
        lowered = lower(schedule)
        verify(lowered)
        marks.append(time.process_time())
        simulate(lowered)
        marks.append(time.process_time())
        parts = [end - start for start, end in pairwise(marks)]
        shown = " | ".join(f"{seconds:.2f}" for seconds in (*parts, sum(parts)))
        print(f"| {name} | {chunks} | {shown} |", flush=True)
        del schedule, lowered
        gc.collect()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="torch at 64 ranks, 1024 microbatches")
    full = parser.parse_args().full
    ours(8, 64)
    theirs(8, 64)  # both once before the clock counts
    beside_torch(BESIDE_TORCH, rounds=3)
    if full:
        beside_torch((FULL,), rounds=1)
    large(rounds=3)
    every_schedule()


if __name__ == "__main__":
    main()
