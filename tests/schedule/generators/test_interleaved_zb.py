from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, Shape, build_schedule
from ppframe.schedule.generators.interleaved_zb import FACTS
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
.     .     6B0   7F1
.     5B0   6F2   7B1
4B0   5F3   6B1   7F2
4W0   5B1   6F3   7B2
0F4   5W0   6B2   7F3
4B1   1F4   6W0   7B3
4W1   5B2   2F4   7W0
0F5   5W1   6B3   3F4
4B2   1F5   6W1   3B0
4W2   5B3   2F5   7W1
0F6   5W2   2B0   3F5
4B3   1F6   6W2   3B1
4W3   1B0   2F6   7W2
0F7   5W3   2B1   3F6
0B0   1F7   6W3   3B2
0W0   1B1   2F7   7W3
4F4   1W0   2B2   3F7
0B1   5F4   2W0   3B3
0W1   1B2   6F4   3W0
4F5   1W1   2B3   7F4
0B2   5F5   2W1   7B4
0W2   1B3   6F5   3W1
4F6   1W2   6B4   7F5
0B3   5F6   2W2   7B5
0W3   5B4   6F6   3W2
4F7   1W3   6B5   7F6
4B4   5F7   2W3   7B6
4W4   5B5   6F7   3W3
4B5   5W4   6B6   7F7
4W5   5B6   6W4   7B7
4B6   5W5   6B7   7W4
4W6   5B7   6W5   3B4
4B7   5W6   2B4   7W5
4W7   1B4   6W6   3B5
0B4   5W7   2B5   7W6
0W4   1B5   6W7   3B6
0B5   1W4   2B6   7W7
0W5   1B6   2W4   3B7
0B6   1W5   2B7   3W4
0W6   1B7   2W5   3W5
0B7   1W6   2W6   3W6
0W7   1W7   2W7   3W7
"""


def test_drawing() -> None:
    assert_same_grid(build_schedule("interleaved-zb", ranks=4, microbatches=8), DRAWING)


def test_with_one_stage_for_each_rank_it_is_zb_h1() -> None:
    for microbatches in range(1, 12):
        interleaved = build_schedule("interleaved-zb", 4, microbatches, chunks_per_rank=1)
        assert interleaved == build_schedule("zb-h1", 4, microbatches)


@pytest.mark.parametrize("rank", range(4))
def test_a_rank_warms_up_with_a_group_for_each_chunk_but_one_and_a_forward_for_each_hop(
    rank: int,
) -> None:
    row = build_schedule("interleaved-zb", ranks=4, microbatches=8, chunks_per_rank=3).actions[rank]
    kinds = [action.kind for action in row]
    assert kinds.index(ActionKind.B) == 2 * 4 + (3 - rank) + 1
    assert kinds[: kinds.index(ActionKind.W)].count(ActionKind.B) == rank + 1


def test_forwards_and_input_gradients_are_those_of_interleaved_1f1b() -> None:
    schedules = (build_schedule(n, 4, 11) for n in ("interleaved-zb", "interleaved-1f1b"))
    rows, others = (schedule.actions for schedule in schedules)
    for row, other in zip(rows, others, strict=True):
        for kind, whole in ((ActionKind.F, ActionKind.F), (ActionKind.B, ActionKind.BW)):
            order = [str(a).replace("B", "BW") for a in row if a.kind is kind]
            assert order == [str(action) for action in other if action.kind is whole]


def test_one_microbatch_takes_its_way_through_all_stages_and_back() -> None:
    """P V forwards, as many input gradients, and the first stage's weight gradient."""
    assert FACTS.makespan(Shape(ranks=5, chunks_per_rank=3, microbatches=1)) == 2 * 15 + 1
