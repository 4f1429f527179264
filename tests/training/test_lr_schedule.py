from __future__ import annotations

import itertools
import math

import pytest

from ppframe.errors import ConfigError
from ppframe.registry import builder
from ppframe.training.lr_schedule import LRSchedule, constant, cosine


def multipliers(schedule: LRSchedule, total_steps: int) -> list[float]:
    return [schedule(step, total_steps) for step in range(total_steps)]


def test_schedules_are_registered():
    assert builder("lr_schedule", "constant") is constant
    assert builder("lr_schedule", "cosine") is cosine


def test_constant_is_one_throughout():
    assert multipliers(constant(), 4) == [1.0, 1.0, 1.0, 1.0]


def test_warmup_rises_linearly_and_never_from_zero():
    assert multipliers(constant(warmup_steps=4), 6) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_cosine_by_hand():
    root = math.sqrt(0.5)
    expected = [1.0, (1 + root) / 2, 0.5, (1 - root) / 2, 0.0]
    assert multipliers(cosine(), 5) == pytest.approx(expected)


def test_cosine_ends_at_its_floor():
    expected = [0.5, 1.0, 1.0, 0.6, 0.2]
    assert multipliers(cosine(warmup_steps=2, floor=0.2), 5) == pytest.approx(expected)


def test_cosine_stays_at_its_floor_beyond_the_last_step():
    assert cosine(floor=0.2)(70, 10) == pytest.approx(0.2)


@pytest.mark.parametrize("total_steps", [1, 2, 3])
def test_a_run_within_the_warmup_only_warms_up(total_steps):
    schedule = cosine(warmup_steps=4)
    assert multipliers(schedule, total_steps) == [0.25, 0.5, 0.75][:total_steps]


@pytest.mark.parametrize("warmup_steps", [0, 1])
def test_a_run_of_one_step_takes_the_base_rate(warmup_steps):
    assert multipliers(cosine(warmup_steps=warmup_steps), 1) == [1.0]


def test_warmup_and_decay_meet_without_a_jump():
    values = multipliers(cosine(warmup_steps=10, floor=0.1), 100)
    steps = [abs(after - before) for before, after in itertools.pairwise(values)]
    assert max(values) == 1.0
    assert max(steps) <= 0.1 + 1e-12
    assert values[10:] == sorted(values[10:], reverse=True)


@pytest.mark.parametrize(
    ("build", "path"),
    [
        (lambda: constant(warmup_steps=-1), "lr_schedule.warmup_steps"),
        (lambda: cosine(warmup_steps=-1), "lr_schedule.warmup_steps"),
        (lambda: cosine(floor=1.5), "lr_schedule.floor"),
    ],
)
def test_options_out_of_range_are_refused(build, path):
    with pytest.raises(ConfigError) as caught:
        build()
    assert caught.value.path == path
