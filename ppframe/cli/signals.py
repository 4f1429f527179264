"""Ctrl-C and SIGTERM while no engine runs: the process ends at once, with a line and no traceback.

Before a run there is nothing to save, and an exception in the middle of an import would come out as
whatever the imported module makes of it. Once an engine runs, its own handlers take over.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import NoReturn


def stop_at_once() -> None:
    """Let SIGINT end this process with exit code 130 from now on, and SIGTERM with 143.

    Outside the main thread, which never gets a signal, nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # it may be in the middle of a write, or closed
            stream.flush()
    with suppress(OSError):
        os.write(2, b"Stopped by a signal.\n")
    os._exit(128 + number)
