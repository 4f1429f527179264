"""How a job ends: what it leaves in its folder, what people are told, what the process exits with.

An error is told at once. People get its message; the traceback goes to `launch.log`, and to the
console too where the error is none of ours or `HYDRA_FULL_ERROR=1` asks for it.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import sys
import time
import traceback
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from ppframe.cli.modes import run
from ppframe.config import Launch, load_config
from ppframe.engine import RemoteError
from ppframe.errors import PPFrameError, StageError
from ppframe.metrics import jsonable, to_json
from ppframe.training.files import write_text
from ppframe.training.interrupt import exit_code_of
from ppframe.training.summary import FILE_NAME, Summary, ending, write_summary

_LOG = logging.getLogger(__name__)
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_OBJECTIVES = ("best_val_loss", "final_loss", "bubble_fraction_predicted")


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended.

    Args:
        summary: what `summary.json` says, in types that JSON has.
        exit_code: 0, 1 for an error, 130 for Ctrl-C, 143 for SIGTERM.
    """

    summary: Mapping[str, Any]
    exit_code: int

    @property
    def objective(self) -> float:
        """Best validation loss, else last training loss, else predicted bubble; else infinity."""
        values = (self.summary.get(name) for name in _OBJECTIVES)
        found = next((value for value in values if value is not None), math.inf)
        number = float(found)
        return number if math.isfinite(number) and not self.exit_code else math.inf


def run_to_end(
    config: Mapping[str, Any], launch: Launch, *, declared: Collection[str] = ()
) -> Outcome:
    """Run a job to its end, whichever that is.

    Args:
        config: what was composed.
        launch: where the run was started and where it writes.
        declared: see `load_config`.
    """
    kept = launch.run_dir / FILE_NAME
    kept.unlink(missing_ok=True)
    started_s = time.perf_counter()
    try:
        return Outcome(jsonable(run(load_config(config, launch, declared=declared))), 0)
    except BaseException as error:  # a job must not end the sweep, not even by sys.exit
        tell(error, launch)
        code = exit_code_of(error)
        if kept.exists():
            return Outcome(_with_cause(kept, error), code)
        wall_s = time.perf_counter() - started_s
        return Outcome(_leave_summary(config, launch, error, wall_s), code)


def _with_cause(kept: Path, error: BaseException) -> Mapping[str, Any]:
    """The summary that a run kept, with the error that ended it.

    Where ranks are processes, the one that writes may only have seen that another one went away.
    """
    summary: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    end = ending(error)
    is_ours = isinstance(error, PPFrameError | KeyboardInterrupt)
    if summary["error"] != end["error"] and is_ours:
        summary.update(end)
        write_text(kept, to_json(summary, indent=2) + "\n")
    return summary


def tell(error: BaseException, launch: Launch) -> None:
    """Say on stderr, and in the log with the traceback, what ended a job."""
    _LOG.debug("The job ended with an error.", exc_info=error)
    in_full = os.environ.get("HYDRA_FULL_ERROR") == "1"
    if isinstance(error, KeyboardInterrupt):
        text = "Stopped by a signal."
    elif isinstance(error, OSError) and error.errno in _NO_ROOM and not in_full:
        text = _no_room_text(error, launch)
    elif isinstance(error, PPFrameError) and not in_full:
        text = "\n".join((str(error), *_origin(error), *getattr(error, "__notes__", ())))
    else:
        text = "".join(traceback.format_exception(error)).rstrip()
    if launch.job is not None:
        text = f"Job {launch.job} ({' '.join(launch.overrides)}) did not finish: {text}"
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _origin(error: PPFrameError) -> list[str]:
    """Where a module of the user raised."""
    if not isinstance(error, StageError):
        return []
    if isinstance(error.cause, RemoteError):
        return [f"Raised in {error.cause.where}."]
    frames = traceback.extract_tb(error.cause.__traceback__)
    return [f"Raised in {frames[-1].filename}, line {frames[-1].lineno}."] if frames else []


def _no_room_text(error: OSError, launch: Launch) -> str:
    """What no traceback would help with."""
    file = error.filename or f"a file in {launch.run_dir}"
    return (
        f"{file} must be written, but writing it gave: {error.strerror}. Free space, or set "
        "hydra.run.dir to a folder elsewhere; what was written before stays."
    )


def _leave_summary(
    config: Mapping[str, Any], launch: Launch, error: BaseException, wall_s: float
) -> Mapping[str, Any]:
    """Write the summary of a job that ended before it could keep one itself; gives it too."""
    summary = Summary(
        mode=str(config.get("mode")),
        wall_s=wall_s,
        run_dir=str(launch.run_dir),
        **ending(error),
    )
    try:
        write_summary(summary)
    except OSError as unwritten:
        if not _is_full(error):  # which was told
            sys.stderr.write(f"{_no_room_text(unwritten, launch)}\n")
    told: Mapping[str, Any] = jsonable(summary.as_dict())
    return told


def _is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _NO_ROOM
