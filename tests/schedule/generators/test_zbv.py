from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, Compute, build_schedule
from tests.schedule.drawings import assert_same_grid

DRAWING = """
0F0   .     .     .
0F1   1F0   .     .
0F2   1F1   2F0   .
0F3   1F2   2F1   3F0
0F4   1F3   2F2   4F0
0F5   1F4   5F0   3F1
0F6   6F0   2F3   4F1
7F0   1F5   5F1   3F2
7B0   6F1   2F4   4F2
7W0   6B0   5F2   3F3
7F1   6W0   5B0   4F3
7B1   6F2   5W0   4B0
7W1   6B1   5F3   4W0
7F2   6W1   5B1   3F4
7B2   6F3   5W1   3B0
7W2   6B2   2F5   3W0
7F3   6W2   2B0   4F4
7B3   1F6   2W0   4B1
7W3   1B0   5F4   4W1
0F7   1W0   5B2   3F5
0B0   6F4   5W2   3B1
0W0   6B3   2F6   3W1
7F4   6W3   2B1   4F5
7B4   1F7   2W1   4B2
7W4   1B1   5F5   4W2
0B1   1W1   5B3   3F6
0W1   6F5   5W3   3B2
7F5   6B4   2F7   3W2
7B5   6W4   2B2   4F6
7W5   1B2   2W2   4B3
0B2   1W2   5F6   4W3
0W2   6F6   5B4   3F7
7F6   6B5   5W4   3B3
7B6   6W5   2B3   3W3
7W6   1B3   2W3   4F7
0B3   1W3   5F7   4B4
0W3   6F7   5B5   4W4
7F7   6B6   5W5   3B4
7B7   6W6   2B4   4B5
7W7   1B4   5B6   3B5
0B4   6B7   2B5   4B6
0W4   1B5   5B7   3B6
0B5   1W4   2B6   4B7
0W5   1B6   2W4   3B7
0B6   1W5   2B7   3W4
0W6   1B7   2W5   4W5
0B7   1W6   5W6   4W6
0W7   6W7   5W7   4W7
.     1W7   2W6   3W5
.     .     2W7   3W6
.     .     .     3W7
"""


def test_drawing() -> None:
    assert_same_grid(build_schedule("zbv", ranks=4, microbatches=8), DRAWING)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_few_microbatches_are_many_of_which_the_rest_is_left_out(ranks: int) -> None:
    full = build_schedule("zbv", ranks, 2 * ranks - 1)
    for microbatches in range(1, 2 * ranks - 1):
        few = build_schedule("zbv", ranks, microbatches)
        for row, all_of_it in zip(few.actions, full.actions, strict=True):
            kept = [a for a in all_of_it if isinstance(a, Compute) and a.microbatch < microbatches]
            assert list(row) == kept


def test_the_first_rank_turns_a_microbatch_round_before_all_others() -> None:
    schedule = build_schedule("zbv", ranks=4, microbatches=8)
    firsts = [[a.kind for a in row].index(ActionKind.B) for row in schedule.actions]
    # 2 (P - r) - 1 forwards of the first chunk, two for each hop from the first rank, and one.
    assert firsts == [7 + 1, 5 + 2 + 1, 3 + 4 + 1, 1 + 6 + 1]


def test_each_rank_ends_with_as_many_weight_gradients_of_both_chunks_as_hops_to_the_first() -> None:
    for rank, row in enumerate(build_schedule("zbv", ranks=4, microbatches=8).actions):
        stages = (7 - rank, rank)
        wanted = [f"{stage}W{i}" for stage in stages for i in range(8 - rank, 8)]
        assert [str(action) for action in row[len(row) - 2 * rank :]] == wanted
