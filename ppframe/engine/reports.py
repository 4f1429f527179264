"""What a rank's process says of its error, and which of several was the first cause.

When one rank fails, the others lose their connection to it and fail as well, mostly sooner than
anybody can stop them. So each leaves a report, those that only lost a connection say so, and the
launching process raises the first of the others.
"""

from __future__ import annotations

import json
import signal
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

from ppframe.errors import (
    CheckpointError,
    ConfigError,
    EngineError,
    Fault,
    PPFrameError,
    StageError,
    TransportError,
)

_HANGS = "did not answer"


class RemoteError(Exception):
    """An exception of another process; subclasses bear the original's name.

    Args:
        message: the original's.
        trace: its traceback, as text.
        where: file and line in which it was raised.
    """

    def __init__(self, message: str, trace: str, where: str) -> None:
        super().__init__(message)
        self.add_note(trace)
        self.where = where


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An error of a rank's process.

    Args:
        rank: pipeline rank.
        kind: name of the exception's class.
        message: its text.
        trace: its traceback.
        where: file and line in which it was raised.
        is_echo: whether it says only that another rank went away.
        lost_peer: rank that it says went away; None where it hangs, or nobody knows which.
        time_s: when, in seconds since the epoch.
        stage: of a `StageError`.
        action: of a `StageError`.
        faults: of a `ConfigError`: pairs of path and message.
        path: of a `CheckpointError`.
    """

    rank: int
    kind: str
    message: str
    trace: str
    where: str
    is_echo: bool
    time_s: float
    stage: int | None = None
    action: str = ""
    faults: tuple[tuple[str, str], ...] = ()
    path: str = ""
    lost_peer: int | None = None


@contextmanager
def reporting(folder: Path, rank: int) -> Iterator[None]:
    """Leave a report of any exception that passes; the end of the process is one too."""
    try:
        yield
    except Exception as error:
        _leave(folder, _report(rank, error))
        raise
    except SystemExit as error:
        _leave(folder, _report(rank, error))
        raise RuntimeError("the process was asked to exit") from error  # so that its code is not 0


def mark_done(folder: Path, rank: int) -> None:
    """Say that a rank came to its end."""
    (folder / f"done_{rank}").touch()


def first_cause(folder: Path, exit_codes: Mapping[int, int]) -> PPFrameError:
    """The error that began it.

    Args:
        folder: where the ranks left their reports.
        exit_codes: of the ranks that ended with an error; negative for a signal.
    """
    reports = [_read(path) for path in folder.glob("report_*.json")]
    reported = {report.rank for report in reports}
    silent = [rank for rank in exit_codes if rank not in reported]
    for report in sorted(reports, key=lambda report: report.time_s):
        if not report.is_echo:
            return _error_of(report)
    if silent:
        return _death_of(silent[0], exit_codes[silent[0]])
    if reports:
        first = min(reports, key=lambda report: report.time_s)
        lost = first.lost_peer
        if lost is not None and lost not in reported and not (folder / f"done_{lost}").exists():
            return EngineError(
                f"the process of rank {lost} must run to its end, but exited before it, without an "
                "error. See what in the model, the data or the loss ends the process.",
                rank=lost,
            )
        return _error_of(first)
    return EngineError("every rank must run to its end, but the launcher failed.", rank=0)


def _leave(folder: Path, report: Report) -> None:
    text = json.dumps(asdict(report))
    (folder / f"report_{report.rank}.json").write_text(text, encoding="utf-8")


def _report(rank: int, error: BaseException) -> Report:
    cause: BaseException = error.cause if isinstance(error, StageError) else error
    frames = traceback.extract_tb(cause.__traceback__)
    trace = "".join(traceback.format_exception(cause)).rstrip()
    faults = error.faults if isinstance(error, ConfigError) else ()
    return Report(
        rank=rank,
        kind=type(cause).__name__,
        message=str(cause),
        trace=trace,
        where=f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "",
        is_echo=isinstance(cause, TransportError),
        time_s=time.time(),
        stage=error.stage if isinstance(error, StageError) else None,
        action=error.action if isinstance(error, StageError) else "",
        faults=tuple((fault.path, fault.message) for fault in faults),
        path=error.path if isinstance(error, CheckpointError) else "",
        lost_peer=_lost_peer(cause),
    )


def _read(path: Path) -> Report:
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["faults"] = tuple(map(tuple, fields["faults"]))
    return Report(**fields)


def _error_of(report: Report) -> PPFrameError:
    original = type(report.kind, (RemoteError,), {})(report.message, report.trace, report.where)
    error: PPFrameError
    if report.stage is not None:
        error = StageError(
            rank=report.rank, stage=report.stage, action=report.action, cause=original
        )
    elif report.faults:
        error = ConfigError([Fault(path, message) for path, message in report.faults])
    elif report.path:
        error = CheckpointError(report.message, path=report.path)
    else:
        error = EngineError(
            f"rank {report.rank} must run to its end, but raised {report.kind}: {report.message}",
            rank=report.rank,
        )
    error.__cause__ = original
    return error


def _death_of(rank: int, exit_code: int) -> EngineError:
    if exit_code < 0:
        how = f"was killed by {signal.Signals(-exit_code).name}"
    else:
        how = f"exited with code {exit_code}"
    return EngineError(
        f"the process of rank {rank} must run to its end, but {how}. If nobody did that on "
        "purpose, the system may have run out of memory.",
        rank=rank,
    )


def _lost_peer(error: BaseException) -> int | None:
    """The rank whose connection was closed."""
    if not isinstance(error, TransportError) or error.peer < 0 or _HANGS in str(error):
        return None
    return error.peer
