"""Idle time from the times of actions."""

from __future__ import annotations

import pytest
import torch

from ppframe.runtime import ActionTime
from ppframe.schedule import Action, build_schedule, lower
from ppframe.training.measure import (
    measure_bubble,
    measured_timeline,
    peak_memory_gib,
    reset_peak_memory,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)


def times(*spans: tuple[int, str, float, float]) -> list[ActionTime]:
    return [ActionTime(rank, Action.parse(text), start, end) for rank, text, start, end in spans]


def test_ranks_that_took_turns_are_put_side_by_side():
    """Two microbatches through two ranks, F 1 s, BW 2 s, one after the other.

        rank 0  F0 F1 .  .  .  B0 B0 B1 B1        9 s, works 6
        rank 1  .  F0 F1 B0 B0 B1 B1 .  .         works 6: idle 6 of 18

    The last rank does F0 BW0 F1 BW1 under 1f1b, which lets rank 0 begin BW0 at 4:
        rank 0  F0 F1 .  .  B0 B0 .  B1 B1
        rank 1  .  F0 B0 B0 F1 B1 B1 .  .
    """
    schedule = build_schedule("1f1b", 2, 2)
    clock, timeline = 0.0, []
    for rank, actions in enumerate(lower(schedule).actions):
        for action in actions:
            text = str(action)
            length = 2.0 if "BW" in text else 1.0 if "F" in text and "SEND" not in text else 0.0
            length = 0.0 if "RECV" in text else length
            timeline.append(ActionTime(rank, action, clock, clock + length))
            clock += length
    bubble = measure_bubble(schedule, timeline, "replayed")
    assert bubble.source == "replayed"
    assert bubble.fraction == pytest.approx(6 / 18)


def test_ranks_that_ran_side_by_side_are_read_as_they_were():
    schedule = build_schedule("1f1b", 2, 1)
    timeline = times(
        (0, "0F0", 0, 1), (0, "0SEND_F0", 1, 1.5), (1, "1RECV_F0", 0, 1.5),
        (1, "1F0", 1.5, 2.5), (1, "1BW0", 2.5, 4.5), (0, "0BW0", 5, 8),
    )  # fmt: skip
    bubble = measure_bubble(schedule, timeline, "wall")
    assert bubble.source == "wall"
    assert bubble.fraction == pytest.approx(1 - 7 / 16)


def test_a_measured_timeline_has_the_computations_as_they_ran():
    schedule = build_schedule("gpipe", 2, 1)
    timeline = times(
        (0, "0F0", 10, 11), (0, "0SEND_F0", 11, 11.5), (1, "1F0", 12, 13), (1, "1BW0", 13, 15),
        (0, "0BW0", 16, 19),
    )  # fmt: skip
    wall = measured_timeline(schedule, timeline, "wall")
    assert [(str(e.action), e.start, e.end) for e in wall] == [
        ("0F0", 10, 11), ("1F0", 12, 13), ("1BW0", 13, 15), ("0BW0", 16, 19),
    ]  # fmt: skip
    replayed = measured_timeline(schedule, timeline, "replayed")
    assert {str(e.action): (e.start, e.end) for e in replayed} == {
        "0F0": (0, 1), "1F0": (1, 2), "1BW0": (2, 4), "0BW0": (4, 7),
    }  # fmt: skip


def test_memory_of_cpu_ranks_is_that_of_the_process():
    reset_peak_memory((CPU, CPU))
    before = peak_memory_gib((CPU, CPU))
    block = b"x" * (200 << 20)
    after = peak_memory_gib((CPU, CPU))
    assert list(after) == ["memory/rank0_peak_gib"]
    grown = after["memory/rank0_peak_gib"] - before["memory/rank0_peak_gib"]
    assert grown == pytest.approx(len(block) / (1 << 30), rel=0.1)


def test_the_peak_starts_anew_where_the_system_lets_it():
    block = b"x" * (200 << 20)
    high = peak_memory_gib((CPU,))["memory/rank0_peak_gib"]
    del block
    reset_peak_memory((CPU,))
    assert peak_memory_gib((CPU,))["memory/rank0_peak_gib"] < high
