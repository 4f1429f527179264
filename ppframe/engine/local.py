"""The local engine: all ranks in this process, walked by one thread."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import torch

from ppframe.engine.base import Engine, Ranks, Result
from ppframe.engine.isolation import isolated
from ppframe.errors import ConfigError
from ppframe.registry import register
from ppframe.training.interrupt import SignalGuard

Device = Literal["auto", "cpu", "cuda"]


@register("engine", "local")
def local(*, device: Device = "auto", num_threads: int | None = None) -> Engine:
    """All ranks in this process.

    Args:
        device: `cpu`; `cuda`: one device for each rank, in turn where there are fewer; `auto`:
            `cuda` where there is one.
        num_threads: threads within a tensor operation on the CPU; None leaves torch's number.

    Raises:
        ConfigError: an option is out of range.
    """
    return LocalEngine(device, num_threads)


@final
@dataclass(frozen=True, slots=True)
class LocalEngine(Engine):
    """Runs the work in the calling thread; see `local` for the options."""

    device: Device = "auto"
    num_threads: int | None = None

    def __post_init__(self) -> None:
        if self.device not in ("auto", "cpu", "cuda"):
            raise ConfigError(
                f"must be `auto`, `cpu` or `cuda`, but is `{self.device}`.", path="engine.device"
            )
        if self.num_threads is not None and self.num_threads < 1:
            raise ConfigError(
                f"must be at least 1, but is {self.num_threads}. Null leaves torch's number "
                f"({torch.get_num_threads()}).",
                path="engine.num_threads",
            )

    def run(
        self,
        work: Callable[[Ranks], Result],
        *,
        num_ranks: int,
        seed: int,
        log_dir: Path | None = None,  # noqa: ARG002 (every rank leads)
        settings: Mapping[str, Any] | None = None,  # noqa: ARG002 (there are no others)
    ) -> Result:
        """Run the work with signals turned into exceptions and the process's state kept."""
        devices = self.devices(num_ranks)
        gc.collect()  # what the last run left behind
        with isolated(seed=seed, num_threads=self.num_threads), SignalGuard() as guard:
            return work(Ranks(devices, guard.hold))

    def devices(self, num_ranks: int) -> tuple[torch.device, ...]:
        """Device of each rank.

        Raises:
            ConfigError: CUDA was asked for and there is none.
        """
        count = torch.cuda.device_count() if self.device != "cpu" else 0
        if count:
            return tuple(torch.device("cuda", rank % count) for rank in range(num_ranks))
        if self.device == "cuda":
            raise ConfigError(
                "must be `cpu` or `auto` where torch finds no CUDA device, but is `cuda`. "
                "Set engine.device=auto.",
                path="engine.device",
            )
        return (torch.device("cpu"),) * num_ranks
