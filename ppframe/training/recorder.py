"""The record of a run: its sinks and its summary, closed whatever happens."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, nullcontext
from types import TracebackType
from typing import Any, final

from ppframe.errors import InternalError
from ppframe.metrics import Fanout, JsonlSink, Plan, RunInfo, Sink
from ppframe.training.interrupt import Hold
from ppframe.training.summary import Summary, ending, write_summary

Facts = Callable[[], Mapping[str, Any]]


@final
class RunRecorder:
    """Entered around a whole run, from building its parts on, so that any end leaves a summary.

    `metrics.jsonl` is always written; the other sinks are the user's choice. At exit
    `summary.json` is written and every sink is finished, with signals kept back meanwhile. An
    error of the run goes on to the caller; one while closing is added to it as a note.

    Args:
        run: what sinks are told; the plan comes with `start`.
        sinks: owned by the recorder from now on.
        hold: keeps signals back.
        leads: whether this process writes; of several that train one model, one does.
    """

    def __init__(
        self,
        run: RunInfo,
        sinks: Iterable[Sink] = (),
        *,
        hold: Hold = nullcontext,
        leads: bool = True,
    ) -> None:
        self.run = run
        self.leads = leads
        self.sink: Sink = Fanout((JsonlSink(), *sinks) if leads else ())
        self._hold = hold
        self._facts: Facts = dict
        self._started_s = 0.0
        self._summary: Summary | None = None

    @property
    def summary(self) -> Summary:
        """How the run ended; there only after it did."""
        if self._summary is None:
            raise InternalError("The summary was asked for before the run had ended.")
        return self._summary

    def start(self, plan: Plan | None, facts: Facts) -> None:
        """Open the sinks.

        Args:
            plan: what is known before the first step.
            facts: gives fields of `Summary` when the run ends.
        """
        self._facts = facts
        self.run = dataclasses.replace(self.run, plan=plan)
        self.sink.start(self.run)

    def __enter__(self) -> RunRecorder:
        self._started_s = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with self._hold(), ExitStack() as stack:
                stack.callback(self._finish)
                self._keep(error)
        except Exception as closing:
            if error is None:
                raise
            error.add_note(f"Closing the run then failed as well: {closing!r}")

    def _keep(self, error: BaseException | None) -> None:
        """Write the summary. A signal that breaks in lets it be written anew, then goes on."""
        signalled: KeyboardInterrupt | None = None
        is_kept = False
        while not is_kept:
            try:
                self._summary = self._summed_up(error)
                if self.leads:
                    write_summary(self._summary)
                is_kept = True
            except KeyboardInterrupt as signal:
                signalled = signal
        if signalled is not None:
            raise signalled

    def _summed_up(self, error: BaseException | None) -> Summary:
        return Summary(
            mode=self.run.job_type,
            wall_s=time.perf_counter() - self._started_s,
            run_dir=str(self.run.run_dir),
            **ending(error),
            **self._facts(),
        )

    def _finish(self) -> None:
        self.sink.finish(self.summary.as_dict(), self.summary.exit_code)
