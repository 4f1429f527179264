"""Profiles: what `mode=profile` measured, as a YAML file that says what it was measured for.

::

    made_for        the run that the numbers hold for; a run that differs is told so
    measured_on     the machine, and how often
    cost            the fields of `Cost`, one number per stage, in seconds and bytes
    allocator       what CUDA's own allocator says; empty elsewhere
"""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, final

from ppframe.config.plain import read_yaml
from ppframe.config.schema import (
    ChunkSpec,
    Component,
    ModelConfig,
    PipelineConfig,
    PositiveInt,
    Target,
)
from ppframe.config.shapes import Check, Leaf, Section
from ppframe.errors import ConfigError, Fault
from ppframe.schedule.cost import Cost

FILE_NAME = "profile.yaml"
PATH = "cost.path"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFor:
    """The run that a profile's numbers hold for.

    Args:
        model: each entry of `model.chunks` as a line of text.
        loss: name or import path of the loss.
        partition: how model chunks were shared out over the stages.
        ranks: pipeline ranks.
        num_stages: stages.
        microbatch_size: samples of a microbatch.
        recompute: whether forwards were run again in the backward.
    """

    model: tuple[str, ...]
    loss: str
    partition: Literal["even", "parameters"] | tuple[PositiveInt, ...]
    ranks: PositiveInt
    num_stages: PositiveInt
    microbatch_size: PositiveInt
    recompute: Literal["none", "full"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredOn:
    """How the numbers of a profile came to be.

    Args:
        devices: name of the device of each rank.
        threads: threads of an operation on the CPU.
        torch: version of torch.
        inputs: type and shape of each tensor of a microbatch's inputs.
        waiting_weights: for each stage, how many parameters' gradients W computes; B computes the
            others.
        warm_up: passes that were not counted.
        repeats: passes of which a time is the median.
    """

    devices: tuple[str, ...]
    threads: int
    torch: str
    inputs: tuple[str, ...]
    waiting_weights: tuple[int, ...]
    warm_up: int
    repeats: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageNumbers:
    """The fields of `Cost`, one number per stage; times in seconds."""

    forward: tuple[float, ...]
    backward_input: tuple[float, ...]
    backward_weight: tuple[float, ...]
    backward: tuple[float, ...]
    transfer: tuple[float, ...]
    activation_bytes: tuple[float, ...]
    weight_bytes: tuple[float, ...]
    weight_share: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorNumbers:
    """What CUDA's allocator says of one F, a number per stage; empty on other devices.

    Args:
        left_bytes: allocated after it and not before.
        peak_bytes: the most that was allocated during it, and not before.
    """

    left_bytes: tuple[float, ...] = ()
    peak_bytes: tuple[float, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was measured, for what, and where."""

    made_for: MadeFor
    measured_on: MeasuredOn
    cost: StageNumbers
    allocator: AllocatorNumbers

    def as_tree(self) -> dict[str, Any]:
        """Plain data, as the file has it."""
        tree = dataclasses.asdict(self)
        return {
            name: {key: list(v) if isinstance(v, tuple) else v for key, v in section.items()}
            for name, section in tree.items()
        }

    def as_cost(self) -> Cost:
        """The cost, in seconds and bytes.

        Raises:
            ConfigError: a number is none that a cost may have.
        """
        return Cost(**dataclasses.asdict(self.cost), time_unit="s")


def read_profile(path: Path) -> Profile:
    """The profile of a file.

    Raises:
        ConfigError: it can't be read, or holds no profile; with everything that is wrong with it.
    """
    try:
        tree = read_yaml(path)
    except OSError as error:
        raise ConfigError(
            f"must be a file that can be read, but {path} gives: {error.strerror}. mode=profile "
            "writes one.",
            path=PATH,
        ) from error
    except ValueError as error:
        raise ConfigError(_no_profile(path, str(error)), path=PATH) from error
    check = Check(path.parent)
    profile = _section(Profile).check(tree, "", check)
    faults = check.faults or _number_faults(profile)
    if faults:
        raise ConfigError([Fault(PATH, _no_profile(path, str(fault))) for fault in faults])
    return cast(Profile, profile)


def made_for(
    *, model: ModelConfig, loss: Component, pipeline: PipelineConfig, num_stages: int
) -> MadeFor:
    """What a profile of these parts holds for."""
    return MadeFor(
        model=tuple(map(_chunk_text, model.chunks)),
        loss=loss.label,
        partition=pipeline.partition,
        ranks=pipeline.ranks,
        num_stages=num_stages,
        microbatch_size=pipeline.microbatch_size,
        recompute=pipeline.recompute,
    )


def _section(made: type) -> Section:
    """The shape of a dataclass of plain values, or of further dataclasses."""
    hints = typing.get_type_hints(made, include_extras=True)
    shapes = {
        name: _section(hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint)
        else Leaf(hint)
        for name, hint in hints.items()
    }
    return Section(made, shapes)


def _number_faults(profile: Profile) -> list[Fault]:
    """What is wrong with numbers of the right type."""
    num_stages = profile.made_for.num_stages
    counts = {name: len(value) for name, value in dataclasses.asdict(profile.cost).items()}
    faults = [
        Fault(f"cost.{name}", f"must have {num_stages} numbers, one per stage, but has {count}.")
        for name, count in counts.items()
        if count != num_stages
    ]
    try:
        profile.as_cost()
    except ConfigError as error:
        faults = faults or list(error.faults)
    return faults


def _no_profile(path: Path, reason: str) -> str:
    return f"must be a profile as mode=profile writes it, but {path} is not: {reason}"


def _chunk_text(spec: ChunkSpec) -> str:
    times = f" × {spec.repeat}" if spec.repeat > 1 else ""
    return f"{_target_text(spec.target)}{times}"


def _target_text(target: Target) -> str:
    given = [_text(value) for value in target.args]
    given += [f"{name}={_text(value)}" for name, value in target.kwargs.items()]
    return f"{target.path}({', '.join(given)})"


def _text(value: Any) -> str:
    if isinstance(value, Target):
        return _target_text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)
