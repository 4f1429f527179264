"""The run on the console: a progress bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from ppframe.errors import ConfigError
from ppframe.metrics import tables
from ppframe.metrics.base import RunInfo, Sink
from ppframe.registry import register

_log = logging.getLogger(__name__)


@register("logger", "console")
def console(*, every_steps: int = 10) -> Sink:
    """Sink for the console.

    Args:
        every_steps: steps between two lines where there is no terminal.
    """
    if every_steps < 1:
        raise ConfigError(
            f"must be at least 1, but is {every_steps}. Use `logger=none` for silence.",
            path="logger.console.every_steps",
        )
    if sys.stdout is None or not sys.stdout.isatty():
        return LineSink(every_steps)
    screen = Console(file=sys.stdout)
    return LineSink(every_steps) if screen.is_dumb_terminal else TerminalSink(screen)


@final
class LineSink(Sink):
    """Tells of the run through `logging`, one line at a time.

    Args:
        every_steps: steps between two lines; the first and the last step and every evaluation have
            their line in any case.
    """

    def __init__(self, every_steps: int) -> None:
        self._every_steps = every_steps
        self._num_steps = 0
        self._started_s = 0.0
        self._first_step = 0

    def start(self, run: RunInfo) -> None:
        """Log the plan."""
        self._num_steps = run.num_steps
        for line in tables.plan_lines(run.plan) if run.plan else ():
            _log.info("%s", line)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Log the step's line when it is due."""
        if not self._first_step:
            self._first_step, self._started_s = step, time.monotonic()
        due = step % self._every_steps == 0 or step in (self._first_step, self._num_steps)
        if due or "val/loss" in metrics:
            line = tables.metrics_line(metrics, step, self._num_steps)
            _log.info("%s%s", line, self._time_left(step))

    def text(self, name: str, text: str) -> None:
        """Log the text under its name."""
        _log.info("%s:\n%s", name, text)

    def finish(self, summary: Mapping[str, Any], exit_code: int) -> None:
        """Log the summary."""
        _log.log(logging.ERROR if exit_code else logging.INFO, "%s", tables.summary_line(summary))

    def _time_left(self, step: int) -> str:
        done, left = step - self._first_step, self._num_steps - step
        if not done or left <= 0:
            return ""
        seconds = (time.monotonic() - self._started_s) / done * left
        return f"  {tables.duration_text(seconds)} left"


@final
class TerminalSink(Sink):
    """Shows the run in a terminal: tables, and a progress bar with the latest numbers.

    While the bar stands, log handlers that write to the terminal write above it.

    Args:
        screen: where to draw.
    """

    def __init__(self, screen: Console) -> None:
        self._screen = screen
        self._num_steps = 0
        self._progress: Progress | None = None
        self._opened = ExitStack()
        self._val_loss: float | None = None

    def start(self, run: RunInfo) -> None:
        """Show the plan and open the progress bar."""
        self._num_steps = run.num_steps
        if run.plan is not None:
            self._screen.print(tables.plan_table(run.plan))
            drawing = tables.plan_drawing(run.plan, self._screen.width)
            if drawing is not None:
                self._screen.print(drawing, highlight=False)
            if run.plan.data:
                self._screen.print(Text(tables.data_line(run.plan)))
        if run.num_steps:
            self._open_progress(run.num_steps)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Move the bar."""
        self._val_loss = metrics.get("val/loss", self._val_loss)
        if "val/loss" in metrics:
            _log.info("%s", tables.metrics_line(metrics, step, self._num_steps))
        if self._progress is not None:
            shown = (
                dict(metrics) if self._val_loss is None else {**metrics, "val/loss": self._val_loss}
            )
            for task in self._progress.task_ids:
                self._progress.update(task, completed=step, numbers=_numbers(shown))

    def text(self, name: str, text: str) -> None:
        """Show the text, as it is, under its name."""
        self._screen.rule(Text(name))
        self._screen.print(Text(text))
        self._screen.rule()

    def finish(self, summary: Mapping[str, Any], exit_code: int) -> None:
        """Close the bar and show the summary."""
        self._opened.close()
        self._progress = None
        self._screen.print(tables.summary_table(summary, good=exit_code == 0))

    def _open_progress(self, num_steps: int) -> None:
        self._progress = Progress(
            MofNCompleteColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[numbers]}", markup=False),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=self._screen,
            expand=True,
            refresh_per_second=4,
        )
        self._progress.add_task("train", total=num_steps, numbers="")
        terminal_streams = (sys.stdout, sys.stderr)
        self._opened.enter_context(self._progress)
        for handler in logging.getLogger().handlers:
            if type(handler) is logging.StreamHandler and handler.stream in terminal_streams:
                is_error_stream = handler.stream is terminal_streams[1]
                before = handler.setStream(sys.stderr if is_error_stream else sys.stdout)
                self._opened.callback(handler.setStream, before)


def _numbers(metrics: Mapping[str, float]) -> str:
    shown = (pair for pair in tables.readings(metrics) if pair[0] != "grad norm")
    return "  ".join(f"{name} {text}" if name else text for name, text in shown)
