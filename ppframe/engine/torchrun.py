"""The torchrun engine: each rank in a process that somebody else started."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from ppframe.engine.base import Engine, Ranks, Result
from ppframe.engine.group import Seat, joined, require_timeout, work_as
from ppframe.engine.local import Device, LocalEngine
from ppframe.engine.logs import divert_output
from ppframe.engine.stopping import StopSign, WatchfulPeers
from ppframe.errors import ConfigError
from ppframe.registry import register
from ppframe.transport import Group

_NEEDED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@register("engine", "torchrun")
def torchrun(
    *, device: Device = "auto", num_threads: int | None = None, timeout_s: float = 600.0
) -> Engine:
    """Each rank in a process that torchrun started, or whatever sets torch's variables.

    Args:
        device: `cpu`; `cuda`: the machine's device of the process's local rank; `auto`: `cuda`
            where there is one.
        num_threads: threads within a tensor operation of a rank; None leaves torch's number.
        timeout_s: a rank that waits for another one for longer ends the run.

    Raises:
        ConfigError: an option is out of range.
    """
    require_timeout(timeout_s)
    return TorchrunEngine(LocalEngine(device, num_threads), timeout_s)


@final
@dataclass(frozen=True, slots=True)
class TorchrunEngine(Engine):
    """Runs this process's rank; see `torchrun` for the options."""

    local: LocalEngine
    timeout_s: float

    def together(self) -> Engine:
        """The local engine of the same devices."""
        return self.local

    def run(
        self,
        work: Callable[[Ranks], Result],
        *,
        num_ranks: int,
        seed: int,
        log_dir: Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        """Run the work as the rank that the environment names; every process gets its result.

        Raises:
            ConfigError: the environment names no rank, their number is another one, or the
                processes were given different settings.
        """
        seat = self._seat(num_ranks)
        with joined(seat) as peers, StopSign() as sign:
            _require_same(settings or {}, peers)
            folder = peers.broadcast(log_dir, 0)
            if seat.rank and folder is not None:
                divert_output(folder / f"rank{seat.rank}.log", seat.rank)
            return work_as(seat, work, peers=WatchfulPeers(peers, sign.seen), seed=seed)

    def _seat(self, num_ranks: int) -> Seat:
        missing = [name for name in _NEEDED if name not in os.environ]
        if missing:
            raise ConfigError(
                f"must be `local` or `processes` where nobody set {', '.join(missing)}. Start with "
                f"torchrun --nproc-per-node {num_ranks} launch.py engine=torchrun.",
                path="engine",
            )
        world = int(os.environ["WORLD_SIZE"])
        if world != num_ranks:
            raise ConfigError(
                f"must be the number of processes, {world}, but is {num_ranks}. Set "
                f"pipeline.ranks={world}, or start {num_ranks} processes.",
                path="pipeline.ranks",
            )
        local_rank = int(os.environ["LOCAL_RANK"])
        devices = self.local.devices(max(local_rank + 1, 1))
        return Seat(
            rank=int(os.environ["RANK"]),
            num_ranks=num_ranks,
            device=torch.device(devices[local_rank]),
            num_threads=self.local.num_threads,
            timeout_s=self.timeout_s,
        )


def _require_same(settings: Mapping[str, Any], peers: Group) -> None:
    """Check that all processes run the same.

    Raises:
        ConfigError: on all of them, with the first key that differs and who has what.
    """
    own = dict(_flat(settings))
    everyone = peers.gather(own)
    text = None if everyone is None else _difference(everyone)
    text = peers.broadcast(text, 0)
    if text is not None:
        raise ConfigError(text[1], path=text[0])


def _difference(everyone: list[dict[str, Any]]) -> tuple[str, str] | None:
    first = everyone[0]
    for rank, other in enumerate(everyone[1:], 1):
        for key in dict.fromkeys((*first, *other)):
            one, two = first.get(key, "nothing"), other.get(key, "nothing")
            if one != two:
                return key, (
                    f"must be the same in all processes, but is {one!r} on rank 0 and {two!r} on "
                    f"rank {rank}. Start all with the same configuration."
                )
    return None


def _flat(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """(dotted path, value) of everything in a nested mapping."""
    if not isinstance(value, Mapping):
        return [(path, value)]
    pairs = (_flat(entry, f"{path}.{key}" if path else str(key)) for key, entry in value.items())
    return [pair for part in pairs for pair in part]
