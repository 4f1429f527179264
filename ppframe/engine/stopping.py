"""Ctrl-C and SIGTERM for a group of processes: all stop after the same step.

One process that stops by itself would leave the others waiting for its messages. So the process
that started the ranks takes the signal and leaves a note in a folder that they share; rank 0 looks
for it in each step and passes it on with a sum that goes around anyway, and each rank raises the
same exception at the same place.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, final

import torch
from torch import Tensor

from ppframe.training.interrupt import Terminated
from ppframe.transport import Peers

_NOTE = "stop"


@final
class StopSign:
    """Turns the signals of the process that started the ranks into a note for them.

    A second signal raises at once. The handlers that were there before come back at exit.

    Args:
        folder: shared with the ranks.
    """

    def __init__(self, folder: Path) -> None:
        self._note = folder / _NOTE
        self._before: dict[signal.Signals, Any] = {}
        self.arrived: signal.Signals | None = None

    def __enter__(self) -> StopSign:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        arrived = signal.Signals(number)
        if self.arrived is not None:
            raise error_of(self.arrived)
        self.arrived = arrived
        self._note.write_text(str(number), encoding="ascii")


@final
class StopTogether:
    """The rank's side: `total` learns of the note, the end of a `hold` raises.

    Args:
        folder: shared with the process that started the ranks.
        peers: the ranks.
    """

    def __init__(self, folder: Path, peers: Peers) -> None:
        self._note = folder / _NOTE
        self._peers = peers
        self._depth = 0
        self._pending = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """A block that is not torn in two; a stop comes at its end, in all ranks alike."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._depth == 0 and self._pending:
            pending, self._pending = self._pending, 0
            raise error_of(signal.Signals(pending))

    def total(self, own: Tensor) -> Tensor:
        """The sum over the ranks of a 0-dim tensor in double precision."""
        sums = self._peers.sum(torch.stack((own.cpu(), own.new_tensor(self._noted()).cpu())))
        self._pending = int(sums[1])
        return sums[0].to(own.device)

    def _noted(self) -> int:
        """The signal on the note, as rank 0 sees it; the note stays, but is heeded once."""
        if self._peers.rank != 0 or not self._note.exists():
            return 0
        text = self._note.read_text(encoding="ascii")
        self._note.unlink()
        return int(text or 0)


def error_of(number: signal.Signals) -> KeyboardInterrupt:
    """What a signal is raised as."""
    return Terminated() if number is signal.SIGTERM else KeyboardInterrupt()
