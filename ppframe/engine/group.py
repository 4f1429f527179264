"""The inside of a rank's process: it joins the others, works, and leaves."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, final

import torch
from torch import distributed

from ppframe.engine.base import Ranks
from ppframe.engine.isolation import isolated
from ppframe.engine.logs import LogHandler, adopt, divert
from ppframe.engine.reports import reporting
from ppframe.engine.stopping import StopTogether
from ppframe.runtime import Member
from ppframe.transport import DistributedTransport, Group

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What every rank's process is given.

    Args:
        work: gets the ranks.
        seed: what the process's own random generators start from.
        devices: device of each rank.
        num_threads: threads within a tensor operation.
        timeout_s: after how long without a message a rank takes another one for hung.
        folder: shared by the ranks and the launching process: reports, and the note to stop.
        log_dir: folder for the logs of ranks that don't lead.
        log_handlers: where rank 0 logs.
    """

    work: Callable[[Ranks], Any]
    seed: int
    devices: tuple[torch.device, ...]
    num_threads: int
    timeout_s: float
    folder: Path
    log_dir: Path
    log_handlers: tuple[LogHandler, ...]


def run_rank(job: Job) -> Any:
    """Work as the rank that the environment names; gives what the work gives on rank 0."""
    rank = int(os.environ["RANK"])
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launching process hears it, and tells all
    if rank:
        divert(job.log_dir / f"rank{rank}.log", rank)
    else:
        adopt(job.log_handlers)
    with reporting(job.folder, rank), _joined(job) as peers:
        stop = StopTogether(job.folder, peers)
        world = distributed.group.WORLD
        assert world is not None
        transport = DistributedTransport(
            rank, group=world, device=job.devices[rank], timeout_s=job.timeout_s
        )
        member = Member(rank, transport, peers)
        ranks = Ranks((job.devices[rank],) * len(job.devices), stop.hold, member, stop.total)
        with isolated(seed=job.seed, num_threads=job.num_threads):
            try:
                result = job.work(ranks)
            except KeyboardInterrupt:
                return None
        peers.barrier()
    return result if rank == 0 else None


@contextmanager
def _joined(job: Job) -> Iterator[Group]:
    """In the group of all ranks."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo", timeout=timedelta(seconds=job.timeout_s))
    try:
        peers = Group.of(range(len(job.devices)), timeout_s=job.timeout_s)
        assert peers is not None
        yield peers
    finally:
        distributed.destroy_process_group()


def _die_with_parent() -> None:
    """Leave no orphan, not even where the launching process is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
