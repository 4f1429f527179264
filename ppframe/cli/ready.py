"""The command line made ready for Hydra: vetted, checked as a whole, with a folder of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ppframe.cli.composer import Composer
from ppframe.cli.entry import quoted
from ppframe.cli.folders import (
    bounded,
    bounded_interpolation,
    claim_folder,
    follows,
    hidden_files,
    scratch_folder,
    writable_folder,
)
from ppframe.cli.hints import with_hint
from ppframe.cli.overrides import Vetted, vet
from ppframe.config import Launch, load_config
from ppframe.config.plain import raw_tree, select
from ppframe.errors import ConfigError, Fault

_QUIET = ("hydra.output_subdir=null", "hydra/job_logging=none", "hydra/hydra_logging=none")


def ready_overrides(arguments: argparse.Namespace) -> list[str]:
    """The overrides as Hydra takes them.

    Args:
        arguments: the command line as Hydra's own parser reads it.

    Raises:
        ConfigError: with every fault of the command line and of the configuration; in a sweep only
            with those that all jobs share, since others don't stop the rest. Or the folder of the
            run can't be had.
    """
    folder = Path.cwd()
    composer = Composer.from_arguments(arguments)
    for file in hidden_files(folder):
        sys.stderr.write(f"{file} is not used: ppframe has an option of that name. Rename it.\n")
    vetted = vet(arguments.overrides, composer, folder, sweeping=arguments.multirun)
    if arguments.cfg is not None:
        return _without_faults(vetted, vetted.faults)
    found = _all_faults(vetted, composer, folder)
    composed = composer.compose(vetted.runs[0])
    overrides = _without_faults(vetted, [with_hint(fault, composed, composer) for fault in found])
    key = "hydra.sweep.dir" if vetted.sweeps else "hydra.run.dir"
    chosen = [override for override in overrides if override.partition("=")[0] == key]
    wanted = folder / str(select(composed.whole, key))
    quiet: tuple[str, ...] = ()
    if follows():
        made, quiet = scratch_folder(), _QUIET
    else:
        made = writable_folder(bounded(wanted)) if chosen else claim_folder(wanted)
    folders = {key: str(made)}
    if vetted.sweeps:
        subdir = raw_tree(composed.whole)["hydra"]["sweep"]["subdir"]
        folders["hydra.sweep.subdir"] = bounded_interpolation(subdir)
    kept = [override for override in overrides if override.partition("=")[0] not in folders]
    return [*kept, *quiet, *(f"{key}={quoted(text)}" for key, text in folders.items())]


def _without_faults(vetted: Vetted, faults: Sequence[Fault]) -> list[str]:
    if faults:
        raise ConfigError(faults)
    return list(vetted.overrides)


def _all_faults(vetted: Vetted, composer: Composer, folder: Path) -> list[Fault]:
    """The faults of the command line, then those of the configurations that all runs share."""
    runs = [_faults(composer, run, folder) for run in vetted.runs]
    shared = [fault for fault in runs[0] if all(fault in faults for faults in runs)]
    return [*vetted.faults, *shared]


def _faults(composer: Composer, overrides: Sequence[str], folder: Path) -> tuple[Fault, ...]:
    composed = composer.compose(overrides)
    launch = Launch(folder=folder, run_dir=folder)
    try:
        load_config(composed.task, launch, declared=composed.declared("model"))
    except ConfigError as error:
        return error.faults
    return ()
