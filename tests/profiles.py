"""Profile files with numbers of the test's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ppframe.config.plain import to_yaml
from ppframe.config.profiles import (
    AllocatorNumbers,
    MeasuredOn,
    Profile,
    StageNumbers,
    made_for,
)
from tests.launching import config_of

MEASURED_ON = MeasuredOn(
    devices=("abacus", "abacus"),
    threads=10,
    torch="0.1",
    inputs=("float32 [2, 4]",),
    waiting_weights=(1, 2, 3, 4),
    warm_up=1,
    repeats=7,
)


def made_profile(
    *overrides: str, num_stages: int, folder: Path, numbers: Mapping[str, Sequence[float]] = {}
) -> Profile:
    """A profile for the run of these overrides, with a second or a byte for what isn't given."""
    config = config_of(*overrides, folder=folder)
    ones = dict.fromkeys(StageNumbers.__slots__, (1.0,) * num_stages)
    given = {name: tuple(values) for name, values in numbers.items()}
    return Profile(
        made_for=made_for(
            model=config.model, loss=config.loss, pipeline=config.pipeline, num_stages=num_stages
        ),
        measured_on=MEASURED_ON,
        cost=StageNumbers(**{**ones, **given}),
        allocator=AllocatorNumbers(),
    )


def write_profile(file: Path, profile: Profile) -> None:
    """The profile as a file."""
    file.write_text(to_yaml(profile.as_tree()), encoding="utf-8")
