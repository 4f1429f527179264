"""Log handlers of a rank's process: those of the launching process, or a file of its own."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import final

_STREAMS = {"stdout": 1, "stderr": 2}


@final
@dataclass(frozen=True, slots=True)
class LogHandler:
    """A log handler as it can be sent to another process.

    Args:
        target: `stdout`, `stderr`, or the path of a file.
        level: least level that it takes.
        form: format of its lines.
    """

    target: str
    level: int
    form: str


def present_handlers() -> tuple[LogHandler, ...]:
    """The handlers of this process's root logger that write to a stream or a file."""
    return tuple(
        LogHandler(target, handler.level, getattr(handler.formatter, "_fmt", "") or "%(message)s")
        for handler in logging.getLogger().handlers
        if (target := _target_of(handler))
    )


def adopt(handlers: tuple[LogHandler, ...]) -> None:
    """Log as the launching process does: to the same streams and files."""
    root = logging.getLogger()
    root.setLevel(
        min((handler.level or logging.INFO for handler in handlers), default=logging.INFO)
    )
    for each in handlers:
        stream = getattr(sys, each.target) if each.target in _STREAMS else None
        handler = logging.StreamHandler(stream) if stream else logging.FileHandler(each.target)
        handler.setLevel(each.level)
        handler.setFormatter(logging.Formatter(each.form))
        root.addHandler(handler)


def divert(path: Path, rank: int) -> None:
    """Send what this process prints and logs to a file; log lines begin with time and rank."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in _STREAMS.values():
        os.dup2(file, stream)
    os.close(file)
    logging.basicConfig(level=logging.INFO, format=_form(rank), force=True)


def divert_output(path: Path, rank: int) -> None:
    """The same, but errors go on to where this process's go: nobody else tells of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, _STREAMS["stdout"])
    os.close(file)
    form = _form(rank)
    logging.basicConfig(level=logging.INFO, format=form, force=True, stream=sys.stdout)


def _form(rank: int) -> str:
    return f"%(asctime)s rank {rank} %(levelname)s %(name)s: %(message)s"


def _target_of(handler: logging.Handler) -> str:
    if isinstance(handler, logging.FileHandler):
        return handler.baseFilename
    if isinstance(handler, logging.StreamHandler):
        return next((name for name in _STREAMS if handler.stream is getattr(sys, name)), "")
    return ""
