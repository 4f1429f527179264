"""A rank in a process: it joins the others, works, and leaves."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import final

import torch
from torch import distributed
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from ppframe.engine.base import Ranks, Result
from ppframe.engine.isolation import isolated
from ppframe.engine.stopping import WatchfulPeers
from ppframe.errors import ConfigError
from ppframe.runtime import Member
from ppframe.transport import DistributedTransport, Group

_JOBS = itertools.count()


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


def require_timeout(timeout_s: float) -> None:
    """Check a time limit.

    Raises:
        ConfigError: it is not above 0.
    """
    if not timeout_s > 0:
        raise ConfigError(
            f"must be above 0, but is {timeout_s}. Give seconds.", path="engine.timeout_s"
        )


@contextmanager
def joined(seat: Seat) -> Iterator[Group]:
    """In the group of all ranks, which the environment describes as torch has it.

    Blocking: until all ranks are there.
    """
    distributed.init_process_group(
        "gloo",
        timeout=timedelta(seconds=seat.timeout_s),
        store=PrefixStore(f"ppframe/{next(_JOBS)}", _store(seat.timeout_s)),
        rank=seat.rank,
        world_size=seat.num_ranks,
    )
    try:
        peers = Group.of(range(seat.num_ranks), timeout_s=seat.timeout_s)
        assert peers is not None
        yield peers
    finally:
        distributed.destroy_process_group()


@functools.cache
def _store(timeout_s: float) -> Store:
    """The store that all processes of the launch share, under a name of its own for each attempt.

    Jobs of a sweep use it one after the other. What one has written there, such as the addresses of
    its ranks, must not be read by the next, nor by ranks that the launcher starts again.
    """
    has_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        int(os.environ["WORLD_SIZE"]),
        is_master=os.environ["RANK"] == "0" and not has_agent,
        timeout=timedelta(seconds=timeout_s),
    )
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"attempt/{attempt}", store)


def work_as(
    seat: Seat,
    work: Callable[[Ranks], Result],
    *,
    peers: WatchfulPeers,
    seed: int,
) -> Result:
    """Do the work as one of the ranks."""
    world = distributed.group.WORLD
    assert world is not None
    transport = DistributedTransport(
        seat.rank, group=world, device=seat.device, timeout_s=seat.timeout_s
    )
    member = Member(seat.rank, transport, peers)
    ranks = Ranks((seat.device,) * seat.num_ranks, peers.hold, member, peers.total)
    gc.collect()  # what the last run left behind
    with isolated(seed=seed, num_threads=seat.num_threads):
        result = work(ranks)
    peers.barrier()
    return result


def use_loopback() -> None:
    """Let processes of one machine talk where its name leads nowhere."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
