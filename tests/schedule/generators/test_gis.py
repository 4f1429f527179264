from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, Shape, build_schedule
from ppframe.schedule.generators.gis import FACTS
from tests.schedule.drawings import assert_same_grid

DRAWING = """
0F0   .     .     .
0F1   1F0   .     .
0F2   1F1   2F0   .
0F3   1F2   2F1   3F0
4F0   1F3   2F2   3F1
4F1   5F0   2F3   3F2
4F2   5F1   6F0   3F3
4F3   5F2   6F1   7F0
.     .     .     7B0
.     .     6B0   7W0
.     5B0   6W0   7F1
4B0   5W0   6F2   7B1
4W0   5F3   6B1   7W1
0F4   5B1   6W1   7F2
4B1   5W1   6F3   7B2
4W1   1F4   6B2   7W2
0F5   5B2   6W2   7F3
4B2   5W2   2F4   7B3
4W2   1F5   6B3   7W3
0F6   5B3   6W3   3F4
4B3   5W3   2F5   3B0
4W3   1F6   2B0   3W0
0F7   1B0   2W0   3F5
0B0   1W0   2F6   3B1
0W0   1F7   2B1   3W1
4F4   1B1   2W1   3F6
0B1   1W1   2F7   3B2
0W1   5F4   2B2   3W2
4F5   1B2   2W2   3F7
0B2   1W2   6F4   3B3
0W2   5F5   2B3   3W3
4F6   1B3   2W3   7F4
0B3   1W3   6F5   7B4
0W3   5F6   6B4   7W4
4F7   5B4   6W4   7F5
4B4   5W4   6F6   7B5
4W4   5F7   6B5   7W5
.     5B5   6W5   7F6
4B5   5W5   6F7   7B6
4W5   .     6B6   7W6
.     5B6   6W6   7F7
4B6   5W6   .     7B7
4W6   .     6B7   7W7
.     5B7   6W7   3B4
4B7   5W7   2B4   3W4
4W7   1B4   2W4   3B5
0B4   1W4   2B5   3W5
0W4   1B5   2W5   3B6
0B5   1W5   2B6   3W6
0W5   1B6   2W6   3B7
0B6   1W6   2B7   3W7
0W6   1B7   2W7   .
0B7   1W7   .     .
0W7   .     .     .
"""


def test_drawing() -> None:
    assert_same_grid(build_schedule("gis", ranks=4, microbatches=8), DRAWING)


def test_every_weight_gradient_follows_its_input_gradient() -> None:
    for row in build_schedule("gis", ranks=4, microbatches=7, chunks_per_rank=3).actions:
        for index, action in enumerate(row):
            if action.kind is ActionKind.B:
                assert str(row[index + 1]) == str(action).replace("B", "W")


@pytest.mark.parametrize("rank", range(4))
def test_a_rank_warms_up_with_a_forward_less_for_each_hop_than_interleaved_1f1b(rank: int) -> None:
    row = build_schedule("gis", ranks=4, microbatches=8, chunks_per_rank=3).actions[rank]
    assert [action.kind for action in row].index(ActionKind.B) == 2 * 4 + (3 - rank) + 1


def test_one_microbatch_takes_its_way_through_all_stages_and_back() -> None:
    """P V forwards, as many input gradients; weight gradients but for the last run on the way."""
    assert FACTS.makespan(Shape(ranks=5, chunks_per_rank=3, microbatches=1)) == 2 * 15 + 1
