r"""Learning-rate schedules: what the base learning rate is multiplied by in each step.

::

    constant      ____________      cosine      _
                 /                             / \
                /                             /   \____ floor
               warm-up                       warm-up
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ppframe.errors import ConfigError
from ppframe.registry import register

LRSchedule = Callable[[int, int], float]
"""(step from 0, total number of steps) to the multiplier of the base learning rate."""


@register("lr_schedule", "constant")
def constant(*, warmup_steps: int = 0) -> LRSchedule:
    """The base learning rate throughout, after a linear warm-up.

    Args:
        warmup_steps: number of steps in which the multiplier rises linearly to 1; the first of
            them already has 1 / `warmup_steps`.

    Raises:
        ConfigError: `warmup_steps` is negative.
    """
    _require_warmup(warmup_steps)

    def multiplier(step: int, total_steps: int) -> float:  # noqa: ARG001 (one signature for all)
        return _warmup(step, warmup_steps)

    return multiplier


@register("lr_schedule", "cosine")
def cosine(*, warmup_steps: int = 0, floor: float = 0.0) -> LRSchedule:
    """Half a cosine from 1 down to a floor, after a linear warm-up.

    Args:
        warmup_steps: number of steps in which the multiplier rises linearly to 1; the step after
            them has 1 too. A run that is shorter ends in its warm-up.
        floor: multiplier of the last step, in [0, 1].

    Raises:
        ConfigError: an option is out of range.

    Reference:
        Loshchilov, Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2016,
        arXiv 1608.03983, equation 5; without restarts.
    """
    _require_warmup(warmup_steps)
    if not 0.0 <= floor <= 1.0:
        raise ConfigError(
            f"must lie in [0, 1], but is {floor}. It is a share of `optimizer.lr`.",
            path="lr_schedule.floor",
        )

    def multiplier(step: int, total_steps: int) -> float:
        if step < warmup_steps:
            return _warmup(step, warmup_steps)
        progress = (step - warmup_steps) / max(1, total_steps - 1 - warmup_steps)
        half_cosine = 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))
        return floor + (1.0 - floor) * half_cosine

    return multiplier


def _warmup(step: int, warmup_steps: int) -> float:
    return (step + 1) / warmup_steps if step < warmup_steps else 1.0


def _require_warmup(warmup_steps: int) -> None:
    if warmup_steps < 0:
        raise ConfigError(
            f"must be at least 0, but is {warmup_steps}. 0 switches the warm-up off.",
            path="lr_schedule.warmup_steps",
        )
