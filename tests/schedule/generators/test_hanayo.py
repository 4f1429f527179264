from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ppframe.errors import ConfigError
from ppframe.schedule import Compute, Placement, build_schedule
from tests.schedule.drawings import assert_same_grid

DRAWING = """
0F0    .      .      .
0F1    1F0    .      .
0F2    1F1    2F0    .
0F3    1F2    2F1    3F0
.      .      .      4F0
.      .      5F0    3F1
.      6F0    2F2    4F1
7F0    1F3    5F1    3F2
7BW0   6F1    2F3    4F2
7F1    6BW0   5F2    3F3
7BW1   6F2    5BW0   4F3
7F2    6BW1   5F3    4BW0
7BW2   6F3    5BW1   3BW0
7F3    6BW2   2BW0   4BW1
7BW3   1BW0   5BW2   3BW1
0BW0   6BW3   2BW1   4BW2
0F4    1BW1   5BW3   3BW2
0BW1   1F4    2BW2   4BW3
0F5    1BW2   2F4    3BW3
0BW2   1F5    2BW3   3F4
0F6    1BW3   2F5    4F4
0BW3   1F6    5F4    3F5
0F7    6F4    2F6    4F5
7F4    1F7    5F5    3F6
7BW4   6F5    2F7    4F6
7F5    6BW4   5F6    3F7
7BW5   6F6    5BW4   4F7
7F6    6BW5   5F7    4BW4
7BW6   6F7    5BW5   3BW4
7F7    6BW6   2BW4   4BW5
7BW7   1BW4   5BW6   3BW5
0BW4   6BW7   2BW5   4BW6
.      1BW5   5BW7   3BW6
0BW5   .      2BW6   4BW7
.      1BW6   .      3BW7
0BW6   .      2BW7   .
.      1BW7   .      .
0BW7   .      .      .
"""


def test_drawing() -> None:
    assert_same_grid(build_schedule("hanayo", ranks=4, microbatches=8), DRAWING)


@pytest.mark.parametrize(
    ("options", "chunks"),
    [({}, 2), ({"waves": 1}, 2), ({"waves": 3}, 6), ({"chunks_per_rank": 4}, 4),
     ({"waves": 2, "chunks_per_rank": 4}, 4)],
)  # fmt: skip
def test_waves_and_chunks_follow_from_each_other(options: dict[str, int], chunks: int) -> None:
    schedule = build_schedule("hanayo", ranks=3, microbatches=4, **options)
    assert schedule.placement == Placement.v(3, chunks)


@pytest.mark.parametrize(
    ("options", "path", "phrase"),
    [
        (
            {"waves": 2, "chunks_per_rank": 2},
            "chunks_per_rank",
            "must be 4 for `hanayo` of 2 waves",
        ),
        ({"waves": 1, "chunks_per_rank": 4}, "chunks_per_rank", "or use waves 2"),
        ({"chunks_per_rank": 3}, "chunks_per_rank", "a multiple of 2 for `hanayo`, but is 3"),
        ({"chunks_per_rank": 1}, "chunks_per_rank", "Use 2"),
        ({"waves": 0}, "schedule.waves", "a whole number from 1, but is 0"),
        ({"waves": "two"}, "schedule.waves", "but is 'two'"),
    ],
)
def test_numbers_that_do_not_go_together(options: dict[str, Any], path: str, phrase: str) -> None:
    with pytest.raises(ConfigError, match=phrase) as caught:
        build_schedule("hanayo", ranks=3, microbatches=4, **options)
    assert caught.value.path == path


def slots_of(ranks: int, chunks: int, microbatches: int) -> dict[str, int]:
    """Chimera's slots on a chain of all stages, a microbatch every second one, groups of P."""
    stages = ranks * chunks
    slots = {}
    for microbatch in range(microbatches):
        start = microbatch // ranks * 2 * stages + microbatch % ranks * 2
        for stage in range(stages):
            slots[f"{stage}F{microbatch}"] = start + stage
            slots[f"{stage}BW{microbatch}"] = start + stages + (stages - 1 - stage)
    return slots


@pytest.mark.parametrize("waves", [1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 4, 5])
def test_no_two_actions_of_a_rank_have_the_same_slot(ranks: int, waves: int) -> None:
    for microbatches in (1, ranks, 2 * ranks + 1, 3 * ranks):
        slots = slots_of(ranks, 2 * waves, microbatches)
        for row in build_schedule("hanayo", ranks, microbatches, waves=waves).actions:
            assert all(slots[str(a)] < slots[str(b)] for a, b in pairwise(row))


def test_at_most_p_microbatches_are_in_flight() -> None:
    for row in build_schedule("hanayo", ranks=4, microbatches=12, waves=2).actions:
        open_: set[int] = set()
        left = {microbatch: 4 for microbatch in range(12)}
        for action in row:
            assert isinstance(action, Compute)
            open_.add(action.microbatch)
            assert len(open_) <= 4
            left[action.microbatch] -= action.kind.value == "BW"
            open_ -= {action.microbatch} if left[action.microbatch] == 0 else set()
