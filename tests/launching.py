"""Command lines in this process, and configurations as a command line would compose them."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from hydra._internal.utils import get_args_parser
from omegaconf import OmegaConf

from ppframe.cli import main
from ppframe.cli.composer import Composer
from ppframe.cli.overrides import vet
from ppframe.config import Launch, RunConfig, load_config
from ppframe.errors import ConfigError, Fault

TINY_MLP = (
    "model=mlp",
    "model.dim=8",
    "data=synthetic",
    "data.in_features=4",
    "data.out_features=2",
    "data.hidden_features=8",
    "loss=mse",
    "logger=none",
    "debug=smoke",
)
TINY_GPT = (
    "model.dim=16",
    "model.heads=2",
    "data.seq_len=8",
    "data.max_bytes=100000",
    "logger=none",
    "debug=smoke",
)
GONE = object()


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


def launch(*argv: str, folder: Path) -> Ended:
    """What `python launch.py *argv` does in a folder, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with process_state(), redirect_stdout(out), redirect_stderr(err):
        os.chdir(folder)
        with mock.patch.object(sys, "argv", ["launch.py", *argv]):
            try:
                main()
            except SystemExit as ended:
                code = ended.code
    return Ended(code or 0, out.getvalue(), err.getvalue())


@contextmanager
def process_state() -> Iterator[None]:
    """Folder, import path, handlers of signals and of log messages are put back."""
    folder, path, root = Path.cwd(), list(sys.path), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    numbers = (signal.SIGINT, signal.SIGTERM)
    signals = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        for number, stopper in zip(numbers, signals, strict=True):
            signal.signal(number, stopper)
        os.chdir(folder)
        sys.path[:] = path
        for handler in set(root.handlers) - set(handlers):
            root.removeHandler(handler)
            handler.close()
        for handler in handlers:
            if handler not in root.handlers:
                root.addHandler(handler)
        root.setLevel(level)


@cache
def composer() -> Composer:
    """The composer of a bare command line."""
    return Composer.from_arguments(get_args_parser().parse_args([]))


def vetted(*overrides: str, folder: Path | None = None) -> tuple[str, ...]:
    """The overrides as Hydra gets them, of a command line without faults."""
    found = vet(overrides, composer(), folder or Path.cwd(), sweeping=False)
    assert found.faults == ()
    return found.overrides


def config_of(*overrides: str, folder: Path) -> RunConfig:
    """The checked configuration of a run that was started, and writes, in a folder.

    Args:
        overrides: in Hydra's own form; `vetted` brings others into it.
        folder: the launch folder and the run directory.
    """
    with process_state():
        composed = composer().compose(overrides)
        launch = Launch(folder=folder, run_dir=folder)
        return load_config(composed.task, launch, declared=composed.declared("model"))


def faults_with(values: Mapping[str, Any], *, folder: Path) -> dict[str, str]:
    """Faults of the default configuration with values changed, as a file would change them.

    Args:
        values: by dotted path; `GONE` takes a key away.
        folder: the launch folder.
    """
    tree = composer().compose([]).task
    OmegaConf.set_struct(tree, False)
    for key, value in values.items():
        OmegaConf.update(tree, key, None if value is GONE else value, merge=False)
        if value is GONE:
            parent, _, last = key.rpartition(".")
            OmegaConf.select(tree, parent).pop(last)
    with process_state():
        try:
            load_config(tree, Launch(folder=folder, run_dir=folder))
        except ConfigError as error:
            return by_path(error.faults)
    return {}


def by_path(faults: Sequence[Fault]) -> dict[str, str]:
    """Messages by path."""
    return {fault.path: fault.message for fault in faults}
