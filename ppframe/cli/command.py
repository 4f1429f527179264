"""From a command line to Hydra: vet it, claim a folder, hand over."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import hydra
from hydra._internal.utils import get_args_parser

from ppframe.cli.composer import CONFIG_NAME, VERSION_BASE, Composer
from ppframe.cli.folders import conf_folder
from ppframe.cli.help import help_text
from ppframe.cli.job import run_job
from ppframe.errors import PPFrameError


def run_command() -> None:
    """Run the command line of this process; exits with 0, 1 for faults, 130 or 143 for signals."""
    # Read by OpenMP when torch is loaded. Threads that spin while they wait for each other make a
    # run many times slower as soon as anything else wants their cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # On a full disk launch.log would tell of itself, with a traceback for each line it can't hold.
    logging.raiseExceptions = False
    try:
        _main(sys.argv[1:])
    except PPFrameError as error:
        _exit_with(error)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _main(argv: Sequence[str]) -> None:
    arguments = get_args_parser().parse_intermixed_args(argv)
    if arguments.config_path is not None:
        arguments.config_path = str(Path(arguments.config_path).resolve())
    if arguments.help:
        sys.stdout.write(help_text(Composer.from_arguments(arguments), arguments.overrides))
        return
    if not _is_left_to_hydra(arguments):
        sys.argv[1:] = [*_flags(arguments), *_ready(arguments)]
    hydra.main(version_base=VERSION_BASE, config_path=str(conf_folder()), config_name=CONFIG_NAME)(
        run_job
    )()


def _is_left_to_hydra(arguments: argparse.Namespace) -> bool:
    return bool(
        arguments.hydra_help
        or arguments.shell_completion
        or arguments.info is not None
        or arguments.experimental_rerun is not None
    )


def _flags(arguments: argparse.Namespace) -> list[str]:
    """The command line without its overrides."""
    flags = [f"--{name}" for name in ("run", "multirun", "resolve") if getattr(arguments, name)]
    for name in ("cfg", "package", "config_path", "config_name", "config_dir"):
        value = getattr(arguments, name)
        if value is not None:
            flags += [f"--{name.replace('_', '-')}", value]
    return flags


def _ready(arguments: argparse.Namespace) -> list[str]:
    """The overrides, vetted; loads torch, which help and completion do without."""
    from ppframe.cli.ready import ready_overrides

    return ready_overrides(arguments)


def _exit_with(error: PPFrameError) -> NoReturn:
    if os.environ.get("HYDRA_FULL_ERROR") == "1":
        traceback.print_exception(error)
    else:
        sys.stderr.write(f"{error}\n")
    sys.exit(1)
