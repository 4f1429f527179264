"""Ctrl-C and SIGTERM as exceptions that come at a good moment.

A signal that strikes between two parameters of an update would leave a model that no step ever
made. So work that must not be torn in two runs under `hold`, and the exception comes right after
it. Whoever signals again during that work means it: the second one comes at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, final

Hold = Callable[[], AbstractContextManager[None]]


@final
class Terminated(KeyboardInterrupt):
    """SIGTERM arrived. Like Ctrl-C it is no `Exception`, so that nobody takes it for a failure."""


def exit_code_of(error: BaseException | None) -> int:
    """What a process exits with after this: 0, 130 for Ctrl-C, 143 for SIGTERM, else 1."""
    if error is None:
        return 0
    if isinstance(error, Terminated):
        return 128 + signal.SIGTERM
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT
    return 1


@final
class SignalGuard:
    """Raises KeyboardInterrupt on SIGINT and Terminated on SIGTERM while it is entered.

    The handlers that were there before come back at exit. In a thread other than the main one
    signals are never delivered, and the guard does nothing.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._depth = 0
        self._pending: signal.Signals | None = None

    def __enter__(self) -> SignalGuard:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep a signal back until the block has ended; a second one breaks through."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._depth == 0 and self._pending is not None:
            pending, self._pending = self._pending, None
            raise _error_of(pending)

    def _arrived(self, number: int, _frame: FrameType | None) -> None:
        arrived = signal.Signals(number)
        if self._depth and self._pending is None:
            self._pending = arrived
            return
        self._pending = None
        raise _error_of(arrived)


def _error_of(number: signal.Signals) -> KeyboardInterrupt:
    return Terminated() if number is signal.SIGTERM else KeyboardInterrupt()
