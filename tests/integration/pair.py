"""Two real processes with a gloo group, running one function each."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

LIMIT_S = 60

Body = Callable[[int, Path], None]
"""(rank, folder of the test) → runs with the group of both as the default group."""


def run_pair(body: Body, folder: Path, *, killed: int | None = None) -> None:
    """Run a function in two processes, until both have ended.

    Args:
        body: what they run; an exception in it ends its process with a traceback on stderr.
        folder: a folder of the test's own, for their rendezvous and what they leave.
        killed: rank that is expected to end by SIGKILL.
    """
    spawn = multiprocessing.get_context("spawn")
    pair = [spawn.Process(target=_enter, args=(rank, body, folder)) for rank in range(2)]
    for process in pair:
        process.start()
    try:
        for process in pair:
            process.join(LIMIT_S)
        assert [process.exitcode for process in pair] == [
            -9 if rank == killed else 0 for rank in range(2)
        ]
    finally:
        for process in pair:
            process.kill()
            process.join()
    assert multiprocessing.active_children() == []


def _enter(rank: int, body: Body, folder: Path) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    body(rank, folder)
    dist.destroy_process_group()
