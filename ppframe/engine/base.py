"""What an engine promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

import torch

from ppframe.runtime import Member
from ppframe.training.clip import Total, as_it_is
from ppframe.training.interrupt import Hold

Result = TypeVar("Result")


@final
@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks that an engine made, as the work on them sees it.

    Args:
        devices: device of each pipeline rank.
        hold: context that keeps SIGINT and SIGTERM back until its block has ended.
        member: which rank this process runs; None where it runs all.
        total: adds up what each process has of the gradients' squares.
    """

    devices: tuple[torch.device, ...]
    hold: Hold
    member: Member | None = None
    total: Total = as_it_is

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes files and talks to people."""
        return self.member is None or self.member.rank == 0


class Engine(ABC):
    """Makes ranks, lets work run on them, and takes them away again."""

    def together(self) -> Engine:
        """An engine of the same devices that keeps all ranks in this process; by default itself."""
        return self

    @abstractmethod
    def run(
        self,
        work: Callable[[Ranks], Result],
        *,
        num_ranks: int,
        seed: int,
        log_dir: Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        """Run `work` and give what it gives, where ranks are processes what the first one gives.

        Every run begins in the same state of the process and leaves the process as it was, so that
        several in a row equal each one alone.

        Args:
            work: gets the ranks; its errors come out unchanged. Where ranks are processes it is
                pickled.
            num_ranks: pipeline ranks.
            seed: what the process's own random generators start from.
            log_dir: folder for the logs of ranks that don't lead, made when there are any; None
                drops them.
            settings: the whole configuration, which must be the same in all processes that were
                started apart.

        Raises:
            ConfigError: such ranks can't be had on this machine.
            EngineError: a process ended that should not have.
            KeyboardInterrupt: Ctrl-C; its subclass `Terminated` for SIGTERM.

        Blocking: until the work has ended.
        """
