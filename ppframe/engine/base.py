"""What an engine promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, final

import torch

from ppframe.training.interrupt import Hold

Result = TypeVar("Result")


@final
@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks that an engine made, as the work on them sees it.

    Args:
        devices: device of each pipeline rank.
        hold: context that keeps SIGINT and SIGTERM back until its block has ended.
    """

    devices: tuple[torch.device, ...]
    hold: Hold


class Engine(ABC):
    """Makes ranks, lets work run on them, and takes them away again."""

    @abstractmethod
    def run(self, work: Callable[[Ranks], Result], *, num_ranks: int, seed: int) -> Result:
        """Run `work` and give what it gives.

        Every run begins in the same state of the process and leaves the process as it was, so that
        several in a row equal each one alone.

        Args:
            work: gets the ranks; its errors come out unchanged.
            num_ranks: pipeline ranks.
            seed: what the process's own random generators start from.

        Raises:
            ConfigError: such ranks can't be had on this machine.
            KeyboardInterrupt: Ctrl-C; its subclass `Terminated` for SIGTERM.

        Blocking: until the work has ended.
        """
