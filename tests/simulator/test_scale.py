"""How the time to simulate grows; benchmarks/schedule_scale has the figures."""

from __future__ import annotations

import time

import pytest

from ppframe.schedule import build_schedule, lower
from ppframe.simulator import simulate


def seconds(microbatches: int, *, is_lowered: bool) -> float:
    schedule = build_schedule("interleaved-1f1b", 16, microbatches, chunks_per_rank=2)
    subject = lower(schedule) if is_lowered else schedule
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        simulate(subject)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("is_lowered", [False, True])
def test_four_times_the_actions_take_about_four_times_the_time(is_lowered: bool) -> None:
    small, large = (seconds(m, is_lowered=is_lowered) for m in (32, 128))
    assert large < 8 * small  # were it quadratic: 16
