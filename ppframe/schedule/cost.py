"""What the actions of a schedule cost: time for each kind, latency of a hop, bytes kept.

One typed statement of cost, so that no second table can disagree with it: whoever wants to know how
long an action takes asks `Cost`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, TypeAlias, final

from ppframe.errors import ConfigError, Fault

PerStage: TypeAlias = float | Sequence[float]
"""A number for all stages, or one number per stage."""


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """Time and memory of one microbatch on one stage; each field one number, or one per stage.

    Whatever unit the durations are in, the report is in it.

    Args:
        forward: duration of F.
        backward_input: duration of B, the backward for the stage's input.
        backward_weight: duration of W, the backward for the stage's weights.
        transfer: latency of a hop between two ranks, by the stage that sends; it occupies neither
            rank, and there is none between two stages of the same rank.
        backward: duration of BW; `None` means B and W one after the other.
        activation_bytes: bytes that F leaves in memory for the backward.
        weight_bytes: bytes of the stage that stay the whole step: parameters, gradients, optimizer
            state, whatever is to be counted.
        weight_share: part of the activation that is still held for W after B has run; the papers'
            M_W / M_B. The default lets B free nothing. Above 1 where B leaves more than it found,
            gradients beside operands.
        time_unit: what the times are in, as people read it; `s` is shown as ms or µs where that is
            shorter. Empty where the unit has no name.

    Raises:
        ConfigError: a field is negative, infinite or no number, or two fields give numbers for
            different counts of stages; lists every such field.

    Reference:
        Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv 2401.10241, section 2.3, for times
        and memory. There every stage costs the same, and B never leaves more than it found.

    Example:
        >>> cost = Cost(forward=(1, 2), backward_input=1, backward_weight=0.5, transfer=0.1)
        >>> cost.forward, cost.transfer, cost.num_stages
        ((1.0, 2.0), 0.1, 2)
        >>> Cost(1, 1, 1).of_stages("backward", 3)
        (2.0, 2.0, 2.0)
    """

    forward: PerStage
    backward_input: PerStage
    backward_weight: PerStage
    transfer: PerStage = 0.0
    backward: PerStage | None = None
    activation_bytes: PerStage = 0.0
    weight_bytes: PerStage = 0.0
    weight_share: PerStage = 1.0
    time_unit: str = ""

    def __post_init__(self) -> None:
        faults: list[Fault] = []
        for name in self.numbers():
            value = getattr(self, name)
            if name == "backward" and value is None:
                continue
            wrong = _faults(f"cost.{name}", value)
            faults.extend(wrong)
            if not wrong:
                object.__setattr__(self, name, _plain(value))
        faults = faults or _length_faults(self._lengths())
        if faults:
            raise ConfigError(faults)

    @classmethod
    def numbers(cls) -> tuple[str, ...]:
        """Names of the fields that hold a number, or one per stage."""
        return tuple(field.name for field in fields(cls) if field.name != "time_unit")

    @property
    def num_stages(self) -> int | None:
        """How many stages the fields give numbers for; `None` when every field is one number."""
        return next(iter(self._lengths().values()), None)

    @property
    def has_bytes(self) -> bool:
        """Whether it says of anything how much memory it takes."""
        held = (self.activation_bytes, self.weight_bytes)
        return any(any(value) if isinstance(value, Sequence) else value for value in held)

    def of_stages(self, field: str, num_stages: int) -> tuple[float, ...]:
        """One number per stage for a field, in the order of stages.

        Args:
            field: name of the field, such as `forward`; `backward` that was not given is the sum.
            num_stages: stages of the schedule that is asked about.

        Raises:
            ConfigError: the field gives numbers for another count of stages.
        """
        value = getattr(self, field)
        if value is None:
            inputs = self.of_stages("backward_input", num_stages)
            weights = self.of_stages("backward_weight", num_stages)
            return tuple(b + w for b, w in zip(inputs, weights, strict=True))
        if isinstance(value, float):
            return (value,) * num_stages
        if len(value) != num_stages:
            raise ConfigError(
                f"must give one number per stage, but gives {len(value)} (stages {num_stages}). "
                "Give one for each stage, or a single number for all.",
                path=f"cost.{field}",
            )
        return tuple(value)

    def _lengths(self) -> dict[str, int]:
        values = {name: getattr(self, name) for name in self.numbers()}
        return {name: len(value) for name, value in values.items() if isinstance(value, tuple)}


def _plain(value: Any) -> float | tuple[float, ...]:
    if isinstance(value, Real):
        return float(value)
    return tuple(float(number) for number in value)


def _faults(path: str, value: Any) -> list[Fault]:
    """What keeps a value from being a number from 0, or one per stage."""
    numbers = {path: value}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        numbers = {f"{path}[{stage}]": number for stage, number in enumerate(value)}
    if not numbers:
        return [Fault(path, "must hold a number per stage, but is empty. Give a number.")]
    rule = "must be a finite number, 0 or more, but is"
    return [
        Fault(where, f"{rule} {number!r}. Give one number, or one per stage.")
        for where, number in numbers.items()
        if not _is_legal(number)
    ]


def _is_legal(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, Real):
        return False
    return math.isfinite(number) and float(number) >= 0


def _length_faults(lengths: dict[str, int]) -> list[Fault]:
    """A fault for each field whose count of stages is not that of the first."""
    first = next(iter(lengths), "")
    return [
        Fault(
            f"cost.{name}",
            f"must give {lengths[first]} numbers as `{first}` does, but gives {length}. "
            "Give one for each stage, or a single number for all.",
        )
        for name, length in lengths.items()
        if length != lengths[first]
    ]


UNIT_COST = Cost(1, 1, 1, time_unit="forwards")
"""Forward and both backward parts cost the same, hops nothing: the papers' unit costs."""
