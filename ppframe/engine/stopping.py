"""Ctrl-C and SIGTERM for a group of processes: all stop after the same step.

One process that stopped by itself would leave the others waiting for its messages. So whoever hears
a signal only remembers it; a sum that goes around in each step anyway tells all, and each raises
the same exception at the same place.

::

    signal ──▶ launching process ──▶ note in a shared folder ──▶ rank 0 ─┐
    signal ──▶ a rank that somebody else started ────────────────────────┴▶ sum ──▶ every rank
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, final

import torch
from torch import Tensor

from ppframe.training.interrupt import Terminated
from ppframe.transport import Peers

_NUMBERS = (signal.SIGTERM, signal.SIGINT)


@final
class StopSign:
    """Remembers a signal of this process; a second one raises at once.

    The handlers that were there before come back at exit.

    Args:
        tell: called with the signal; None where nobody else need know.
    """

    def __init__(self, tell: Callable[[signal.Signals], object] | None = None) -> None:
        self._tell = tell
        self._before: dict[signal.Signals, Any] = {}
        self.arrived: signal.Signals | None = None

    def __enter__(self) -> StopSign:
        for number in _NUMBERS:
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def seen(self) -> signal.Signals | None:
        """The signal, if one has arrived."""
        return self.arrived

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if self.arrived is not None:
            raise error_of(self.arrived)
        self.arrived = signal.Signals(number)
        if self._tell is not None:
            self._tell(self.arrived)


@final
class Note:
    """A signal passed on through a folder.

    Args:
        folder: shared by the one who writes and the one who reads.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "stop"

    def write(self, number: signal.Signals) -> None:
        """Leave the signal there."""
        self._path.write_text(str(int(number)), encoding="ascii")

    def seen(self) -> signal.Signals | None:
        """The signal, if one is there."""
        if not self._path.exists():
            return None
        text = self._path.read_text(encoding="ascii")
        return signal.Signals(int(text)) if text else None


@final
class WatchfulPeers(Peers):
    """Peers whose sums also tell of signals; the rank raises where no `hold` keeps it from that.

    All ranks take part in the same sums in the same order, so all raise at the same place.

    Args:
        inner: the ranks.
        seen: the signal that this rank knows of.
    """

    def __init__(self, inner: Peers, seen: Callable[[], signal.Signals | None]) -> None:
        self._inner = inner
        self._seen = seen
        self._depth = 0
        self._pending: signal.Signals | None = None
        self._is_heeded = False

    @property
    def rank(self) -> int:
        """As the inner peers say."""
        return self._inner.rank

    @property
    def size(self) -> int:
        """As the inner peers say."""
        return self._inner.size

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over the ranks; see `Peers.sum`."""
        seen = self._seen()
        flags = torch.tensor([float(seen is number) for number in _NUMBERS], dtype=tensor.dtype)
        sums = self._inner.sum(torch.cat((tensor.flatten(), flags)))
        told = sums[-len(_NUMBERS) :].tolist()
        for number, flag in zip(_NUMBERS, told, strict=True):
            if flag and self._pending is None:
                self._pending = number
        self._heed()
        return sums[: -len(_NUMBERS)].view_as(tensor)

    def total(self, own: Tensor) -> Tensor:
        """The sum over the ranks of a 0-dim tensor on any device, in double precision."""
        return self.sum(own.detach().cpu().double()).to(own.device)

    def broadcast(self, value: Any, source: int) -> Any:
        """As the inner peers do."""
        return self._inner.broadcast(value, source)

    def gather(self, value: Any) -> list[Any] | None:
        """As the inner peers do."""
        return self._inner.gather(value)

    def barrier(self) -> None:
        """As the inner peers do."""
        self._inner.barrier()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """A block that is not torn in two; a stop comes at its end, in all ranks alike."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        self._heed()

    def _heed(self) -> None:
        if self._depth == 0 and self._pending is not None and not self._is_heeded:
            self._is_heeded = True
            raise error_of(self._pending)


def error_of(number: signal.Signals) -> KeyboardInterrupt:
    """What a signal is raised as."""
    return Terminated() if number is signal.SIGTERM else KeyboardInterrupt()
