"""The inside of a rank's process that the processes engine started."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from ppframe.engine.base import Ranks
from ppframe.engine.group import Seat, joined, use_loopback, work_as
from ppframe.engine.logs import LogHandler, adopt, divert
from ppframe.engine.reports import mark_done, reporting
from ppframe.engine.stopping import Note, WatchfulPeers

_MOMENT_S = 0.5
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
    note = Note(job.folder)
    _end_on_sigterm(unless=note)
    if rank:
        divert(job.log_dir / f"rank{rank}.log", rank)
    else:
        adopt(job.log_handlers)
    use_loopback()
    seat = Seat(
        rank=rank,
        num_ranks=len(job.devices),
        device=job.devices[rank],
        num_threads=job.num_threads,
        timeout_s=job.timeout_s,
    )
    with reporting(job.folder, rank), joined(seat) as peers:
        watchful = WatchfulPeers(peers, note.seen if rank == 0 else lambda: None)
        try:
            result = work_as(seat, job.work, peers=watchful, seed=job.seed)
        except KeyboardInterrupt:
            result = None
    mark_done(job.folder, rank)
    return result if rank == 0 else None


def _end_on_sigterm(*, unless: Note) -> None:
    """Let SIGTERM end this process soon, also where it waits for a message that never comes.

    Whoever signals a whole group signals the launching process too. It leaves a note then, and the
    ranks stop together; so the note is given a moment to appear.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # threads from here on inherit it

    def wait() -> None:
        signal.sigwait({signal.SIGTERM})
        time.sleep(_MOMENT_S)
        if unless.seen() is None:
            os._exit(128 + signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _die_with_parent() -> None:
    """Leave no orphan, not even where the launching process is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
