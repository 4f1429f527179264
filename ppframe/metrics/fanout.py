"""Several sinks as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, final

from ppframe.metrics.base import RunInfo, Sink


@final
class Fanout(Sink):
    """Passes everything to each of several sinks, in order.

    An error in one of them goes to the caller. Only `finish` first finishes all the others.

    Args:
        sinks: owned by this sink from now on.
    """

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = tuple(sinks)

    def start(self, run: RunInfo) -> None:
        """Start each sink."""
        for sink in self._sinks:
            sink.start(run)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Log to each sink."""
        for sink in self._sinks:
            sink.log(metrics, step)

    def text(self, name: str, text: str) -> None:
        """Give the text to each sink."""
        for sink in self._sinks:
            sink.text(name, text)

    def page(self, name: str, page: str) -> None:
        """Give the page to each sink."""
        for sink in self._sinks:
            sink.page(name, page)

    def finish(self, summary: Mapping[str, Any], exit_code: int) -> None:
        """Finish each sink, also when one raises; its error comes out at the end."""
        with ExitStack() as stack:
            for sink in reversed(self._sinks):
                stack.callback(sink.finish, summary, exit_code)
