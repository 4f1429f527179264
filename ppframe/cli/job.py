"""The job as Hydra calls it: a single run, or one of a sweep."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode

from ppframe.cli.composer import declared_keys
from ppframe.cli.folders import register_bounds
from ppframe.cli.records import write_record

_FAILED = 1

register_bounds()  # here, so that a launcher's child process has it too: it imports this module


def run_job(config: Any) -> float:
    """Run what a composed configuration says.

    A single run that fails ends the process. A failing job of a sweep returns, so that the others
    run; a signal ends the whole sweep.

    Args:
        config: what Hydra composed, without Hydra's own part.

    Returns:
        what a search over hyperparameters makes small, see `Outcome`.
    """
    from ppframe.cli.outcome import run_to_end  # loads torch, which --help does without
    from ppframe.config import Launch

    hydra = HydraConfig.get()
    sweeps = hydra.mode == RunMode.MULTIRUN
    folder = Path(hydra.runtime.cwd)
    launch = Launch(
        folder=folder,
        run_dir=Path(hydra.runtime.output_dir),
        overrides=tuple(hydra.overrides.task),
        sweep_dir=folder / hydra.sweep.dir if sweeps else None,
        job=int(hydra.job.num) if sweeps else None,
    )
    outcome = run_to_end(config, launch, declared=declared_keys(hydra, "model"))
    if launch.sweep_dir is not None and launch.job is not None:
        try:
            write_record(launch.sweep_dir, launch.job, launch.overrides, outcome.summary)
        except OSError as error:
            sys.stderr.write(f"Job {launch.job} won't be in the table of the sweep: {error}.\n")
    if outcome.exit_code and not (sweeps and outcome.exit_code == _FAILED):
        sys.exit(outcome.exit_code)
    return outcome.objective
