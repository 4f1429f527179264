"""The processes engine: each rank in a process of its own, on this machine."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, final

import torch
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ppframe.engine.base import Engine, Ranks, Result
from ppframe.engine.child import Job, run_rank
from ppframe.engine.group import require_timeout
from ppframe.engine.local import Device, LocalEngine
from ppframe.engine.logs import present_handlers
from ppframe.engine.reports import first_cause
from ppframe.engine.stopping import Note, StopSign, error_of
from ppframe.errors import PPFrameError
from ppframe.registry import register

_TALKATIVE = (
    "torch.distributed.elastic.agent.server.api",
    "torch.distributed.elastic.multiprocessing.api",
    "torch.multiprocessing.spawn",
)


@register("engine", "processes")
def processes(
    *, device: Device = "auto", num_threads: int | None = None, timeout_s: float = 600.0
) -> Engine:
    """Each rank in a process of its own, all on this machine.

    Args:
        device: `cpu`; `cuda`: one device for each rank, in turn where there are fewer; `auto`:
            `cuda` where there is one.
        num_threads: threads within a tensor operation of a rank; None shares the cores out.
        timeout_s: a rank that waits for another one for longer ends the run.

    Raises:
        ConfigError: an option is out of range.
    """
    require_timeout(timeout_s)
    return ProcessesEngine(LocalEngine(device, num_threads), timeout_s)


@final
@dataclass(frozen=True, slots=True)
class ProcessesEngine(Engine):
    """Starts the ranks through torch's elastic launcher; see `processes` for the options."""

    local: LocalEngine
    timeout_s: float

    def together(self) -> Engine:
        """The local engine of the same devices."""
        return self.local

    def run(
        self,
        work: Callable[[Ranks], Result],
        *,
        num_ranks: int,
        seed: int,
        log_dir: Path | None = None,
        settings: Mapping[str, Any] | None = None,  # noqa: ARG002 (all get the same job)
    ) -> Result:
        """Run the work in `num_ranks` new processes; gives what it gives on rank 0."""
        with tempfile.TemporaryDirectory(prefix="ppframe_") as folder, _handlers_kept():
            job = Job(
                work=work,
                seed=seed,
                devices=self.local.devices(num_ranks),
                num_threads=self._num_threads(num_ranks),
                timeout_s=self.timeout_s,
                folder=Path(folder),
                log_dir=Path(folder) if log_dir is None else log_dir,
                log_handlers=present_handlers(),
            )
            with StopSign(Note(Path(folder)).write) as sign:
                try:
                    results = _launch(job, num_ranks)
                except PPFrameError:
                    if sign.arrived is None:
                        raise
            if sign.arrived is not None:
                raise error_of(sign.arrived)
        return cast(Result, results[0])

    def _num_threads(self, num_ranks: int) -> int:
        return self.local.num_threads or max(1, torch.get_num_threads() // num_ranks)


def _launch(job: Job, num_ranks: int) -> dict[int, object]:
    """What each rank gives.

    Raises:
        PPFrameError: the error that began it, where a rank failed.
    """
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=num_ranks,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=0,
        monitor_interval=0.05,
        start_method="spawn",
        signals_to_handle="SIGHUP,SIGQUIT",  # the others are ours
    )
    try:
        with _quiet_launcher():
            results: dict[int, object] = elastic_launch(config, run_rank)(job)
    except ChildFailedError as error:
        exit_codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        raise first_cause(job.folder, exit_codes) from None
    return results


@contextmanager
def _quiet_launcher() -> Iterator[None]:
    """Keep the launcher from telling of a failed rank: that is ours to tell, once."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Signal handlers and environment as they were, at the end; the launcher changes both."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    handlers = {number: signal.getsignal(number) for number in numbers}
    environment = dict(os.environ)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        os.environ.clear()
        os.environ.update(environment)
