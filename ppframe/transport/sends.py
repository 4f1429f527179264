"""Sends under way: what must be kept until the receiver has it, and no longer."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from datetime import timedelta
from queue import SimpleQueue
from typing import Final, NamedTuple, Protocol, final

from torch import Tensor

from ppframe.transport.base import Message

_BATCH: Final = 4
"""So many sends are kept before the thread is woken: a wake-up costs as much as a small message."""
_FOREVER: Final = timedelta(days=365)


class Waitable(Protocol):
    """What is needed of the backend's handle of a send."""

    def wait(self, timeout: timedelta) -> object:
        """Wait until the send is done; a RuntimeError if it can't be, or the time is over."""


class Send(NamedTuple):
    """One send, with what must be kept for it."""

    message: Message
    work: Waitable
    buffer: Tensor


@final
class SendFailedError(Exception):
    """A send can't be done any more.

    Args:
        message: what was sent.
        cause: what the backend said.
    """

    def __init__(self, message: Message, cause: RuntimeError) -> None:
        super().__init__(str(cause))
        self.message = message
        self.cause = cause


@final
class SendsUnderWay:
    """Keeps sends until they are done; only `finish` waits.

    Gloo can't be asked whether a send is done: `is_completed` says no until `wait` has returned,
    and a `wait` that runs out of time closes the connection. So a thread waits for them, oldest
    first, and is woken once for a few of them; a step with no more than those needs no thread.
    """

    def __init__(self) -> None:
        self._fresh: list[Send] = []
        self._handed = _Handed()
        self._thread: threading.Thread | None = None

    def keep(self, send: Send) -> None:
        """Keep a send until it is done.

        Raises:
            SendFailedError: an earlier one failed.
        """
        self._fresh.append(send)
        if len(self._fresh) == _BATCH:
            self._hand_over()
            self._handed.raise_failure()

    def finish(self, timeout_s: float) -> None:
        """Wait until all are done.

        Raises:
            SendFailedError: one failed, or the time is over.
        """
        if self._handed.sends:
            self._handed.wait(timeout_s)
        self._handed.raise_failure()
        while self._fresh:
            send = self._fresh.pop(0)
            try:
                send.work.wait(timedelta(seconds=timeout_s))
            except RuntimeError as error:
                raise SendFailedError(send.message, error) from error

    @property
    def num_kept(self) -> int:
        """How many are not known to be done."""
        return len(self._fresh) + len(self._handed.sends)

    def drop(self) -> None:
        """Let go of all; what is not done may never arrive."""
        self._fresh.clear()
        self._handed.queue.put(None)
        self._handed, self._thread = _Handed(), None

    def _hand_over(self) -> None:
        handed = self._handed
        if self._thread is None:
            self._thread = threading.Thread(
                target=handed.wait_for_each, name="ppframe-sends", daemon=True
            )
            self._thread.start()
            weakref.finalize(self, handed.queue.put, None)
        handed.sends.extend(self._fresh)
        handed.queue.put(len(self._fresh))
        self._fresh.clear()


class _Handed:
    """What the thread waits for: sends in order, and how many of them each wake-up is for."""

    def __init__(self) -> None:
        self.sends: deque[Send] = deque()
        self.queue: SimpleQueue[int | threading.Event | None] = SimpleQueue()
        self.failure: SendFailedError | None = None

    def wait_for_each(self) -> None:
        """The thread's life."""
        while (item := self.queue.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
                continue
            for _ in range(item):
                self._wait_for_oldest()

    def _wait_for_oldest(self) -> None:
        try:
            self.sends[0].work.wait(_FOREVER)
        except RuntimeError as error:
            self.failure = self.failure or SendFailedError(self.sends[0].message, error)
        self.sends.popleft()

    def wait(self, timeout_s: float) -> None:
        """Wait until the thread is through with all it was given."""
        through = threading.Event()
        self.queue.put(through)
        if not through.wait(timeout_s) and self.sends:
            error = RuntimeError(f"timed out after {timeout_s:g} s")
            self.failure = self.failure or SendFailedError(self.sends[0].message, error)

    def raise_failure(self) -> None:
        """Tell of the first send that failed, if one did."""
        if self.failure is not None:
            raise self.failure
