"""Profiles: what `mode=profile` leaves and prints, and what is said of one that is used."""

from __future__ import annotations

import logging
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ppframe.cli.entry import quoted
from ppframe.cli.help import command_name
from ppframe.config import RunConfig
from ppframe.config.costs import PROFILED
from ppframe.config.plain import to_yaml
from ppframe.config.profiles import (
    FILE_NAME,
    AllocatorNumbers,
    MeasuredOn,
    Profile,
    StageNumbers,
    made_for,
    read_profile,
)
from ppframe.metrics.tables import bytes_text, time_text
from ppframe.training.files import write_text
from ppframe.training.profile import Machine, StageProfile, machine_of

_LOG = logging.getLogger(__name__)
_WIDTH_ELSEWHERE = 160
_HEAD = (
    "# Measured by mode=profile; mode=plan cost=profiled cost.path=THIS_FILE predicts with it.\n"
)
_COLUMNS = ("stage", "F", "B", "W", "BW", "hop", "activation", "kept for W", "weights+state")
_OWN_KEYS = re.compile(r"[+~]*(mode|cost|profile)(\.[^=]*)?(=|$)")


def keep_profile(
    config: RunConfig, stages: Sequence[StageProfile], machine: Machine, shapes: tuple[str, ...]
) -> Path:
    """Write `profile.yaml`, print it as a table, and say what to do with it.

    Args:
        config: the run.
        stages: what was measured of each stage.
        machine: where.
        shapes: type and shape of the tensors of a microbatch.

    Returns:
        the file.
    """
    profile = _profile_of(config, stages, machine, shapes)
    file = config.launch.run_dir / FILE_NAME
    write_text(file, _HEAD + to_yaml(profile.as_tree()))
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE, file=sys.stdout)
    console.print(_table(profile))
    console.print(Text(f"{_origin(profile)}."), soft_wrap=True)
    console.print(Text(f"Wrote {file}. To plan with it:"), soft_wrap=True)
    console.print(Text(f"  {_plan_command(config, file)}"), soft_wrap=True)
    return file


def cost_text(config: RunConfig) -> str:
    """What the cost of a run is, in a line."""
    if config.cost.name != PROFILED:
        return config.cost.label
    return f"{PROFILED}, {_origin(read_profile(config.cost.options['path']))}"


def warn_of_other_machine(config: RunConfig, devices: Sequence[Any]) -> None:
    """Say so where a profile was measured on something else than what the ranks are on now.

    Args:
        config: the run; any other cost is measured nowhere.
        devices: device of each rank.
    """
    if config.cost.name != PROFILED:
        return
    measured, here = read_profile(config.cost.options["path"]).measured_on, machine_of(devices)
    for name in Machine.__slots__:
        was, is_now = getattr(measured, name), getattr(here, name)
        if was != is_now:
            _LOG.warning(
                "the profile of cost.path was measured with %s %s, but here it is %s; its times "
                "may not hold",
                name,
                _list_text(was),
                _list_text(is_now),
            )


def _profile_of(
    config: RunConfig, stages: Sequence[StageProfile], machine: Machine, shapes: tuple[str, ...]
) -> Profile:
    times, held = [stage.times for stage in stages], [stage.held for stage in stages]
    allocated = [h for h in held if h.allocated_bytes is not None]
    return Profile(
        made_for=made_for(
            model=config.model, loss=config.loss, pipeline=config.pipeline, num_stages=len(stages)
        ),
        measured_on=MeasuredOn(
            devices=machine.devices,
            threads=machine.threads,
            torch=machine.torch,
            inputs=shapes,
            waiting_weights=tuple(stage.num_waiting_weights for stage in stages),
            warm_up=config.profile.warm_up,
            repeats=config.profile.repeats,
        ),
        cost=StageNumbers(
            forward=tuple(_rounded(t.forward_s) for t in times),
            backward_input=tuple(_rounded(t.backward_input_s) for t in times),
            backward_weight=tuple(_rounded(t.backward_weight_s) for t in times),
            backward=tuple(_rounded(t.backward_s) for t in times),
            transfer=tuple(_rounded(t.transfer_s) for t in times),
            activation_bytes=tuple(h.activation_bytes for h in held),
            weight_bytes=tuple(stage.weight_bytes for stage in stages),
            weight_share=tuple(round(h.weight_share, 6) for h in held),
        ),
        allocator=AllocatorNumbers(
            left_bytes=tuple(h.allocated_bytes or 0 for h in allocated),
            peak_bytes=tuple(h.allocated_peak_bytes or 0 for h in allocated),
        ),
    )


def _rounded(seconds: float) -> float:
    """To a nanosecond, which no clock tells better."""
    return round(seconds, 9)


def _table(profile: Profile) -> Table:
    allocator = profile.allocator
    head = (*_COLUMNS, "allocated by F", "at most") if allocator.left_bytes else _COLUMNS
    table = Table(title="one microbatch on each stage", title_justify="left")
    for column in head:
        table.add_column(column, justify="right")
    cost = profile.cost
    times = (cost.forward, cost.backward_input, cost.backward_weight, cost.backward, cost.transfer)
    sizes = (cost.weight_bytes, allocator.left_bytes, allocator.peak_bytes)
    for stage in range(profile.made_for.num_stages):
        table.add_row(
            str(stage),
            *(time_text(column[stage], "s") for column in times),
            bytes_text(cost.activation_bytes[stage]),
            f"{cost.weight_share[stage]:.0%}",
            *(bytes_text(column[stage]) for column in sizes if column),
        )
    return table


def _origin(profile: Profile) -> str:
    how = profile.measured_on
    return (
        f"medians of {how.repeats} repeats after {how.warm_up} to warm up, on "
        f"{_list_text(tuple(dict.fromkeys(how.devices)))} with {how.threads} "
        f"thread{'s' * (how.threads != 1)}, torch {how.torch}"
    )


def _plan_command(config: RunConfig, file: Path) -> str:
    """The command line of this run, with another mode and with its profile."""
    folder = config.launch.folder
    path = str(file.relative_to(folder) if file.is_relative_to(folder) else file)
    kept = [text for text in config.launch.overrides if not _OWN_KEYS.match(text)]
    value = path if re.fullmatch(r"[\w./-]+", path) else quoted(path)
    words = [*kept, "mode=plan", "cost=profiled", f"cost.path={value}"]
    return f"{command_name()} {shlex.join(words)}"


def _list_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else f"{value}"
