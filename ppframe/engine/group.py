"""A rank in a process: it joins the others, works, and leaves."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import final

import torch
from torch import distributed

from ppframe.engine.base import Ranks, Result
from ppframe.engine.isolation import isolated
from ppframe.engine.stopping import StopTogether
from ppframe.runtime import Member
from ppframe.transport import DistributedTransport, Group


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The place of a process among the ranks.

    Args:
        rank: pipeline rank of the process.
        num_ranks: how many there are.
        device: where the rank computes.
        num_threads: threads within a tensor operation; None leaves torch's number.
        timeout_s: after how long without a message a rank takes another one for hung.
    """

    rank: int
    num_ranks: int
    device: torch.device
    num_threads: int | None
    timeout_s: float


@contextmanager
def joined(seat: Seat) -> Iterator[Group]:
    """In the group of all ranks, which the environment describes as torch has it.

    Blocking: until all ranks are there.
    """
    distributed.init_process_group("gloo", timeout=timedelta(seconds=seat.timeout_s))
    try:
        peers = Group.of(range(seat.num_ranks), timeout_s=seat.timeout_s)
        assert peers is not None
        yield peers
    finally:
        distributed.destroy_process_group()


def work_as(
    seat: Seat,
    work: Callable[[Ranks], Result],
    *,
    peers: Group,
    stop: StopTogether,
    seed: int,
) -> Result:
    """Do the work as one of the ranks."""
    world = distributed.group.WORLD
    assert world is not None
    transport = DistributedTransport(
        seat.rank, group=world, device=seat.device, timeout_s=seat.timeout_s
    )
    member = Member(seat.rank, transport, peers)
    ranks = Ranks((seat.device,) * seat.num_ranks, stop.hold, member, stop.total)
    with isolated(seed=seed, num_threads=seat.num_threads):
        result = work(ranks)
    peers.barrier()
    return result


def use_loopback() -> None:
    """Let processes of one machine talk where its name leads nowhere."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
