from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, Shape, build_schedule
from ppframe.schedule.generators.zb_h2 import FACTS
from tests.schedule.drawings import assert_same_grid
from tests.simulator.shapes import zero_bubble


def test_drawing() -> None:
    drawing = """
    0F0   .     .     .
    0F1   1F0   .     .
    0F2   1F1   2F0   .
    0F3   1F2   2F1   3F0
    0F4   1F3   2F2   3B0
    0F5   1F4   2B0   3F1
    0F6   1B0   2F3   3B1
    0B0   1F5   2B1   3F2
    0W0   1B1   2F4   3B2
    0F7   1F6   2B2   3F3
    0B1   1B2   2F5   3B3
    0W1   1W0   2B3   3F4
    0B2   1F7   2F6   3B4
    0W2   1B3   2B4   3F5
    0B3   1W1   2W0   3B5
    0W3   1B4   2F7   3F6
    0B4   1W2   2B5   3B6
    0W4   1B5   2W1   3W0
    0B5   1W3   2B6   3F7
    0W5   1B6   2W2   3B7
    0B6   1W4   2B7   3W1
    0W6   1B7   2W3   3W2
    0B7   1W5   2W4   3W3
    0W7   1W6   2W5   3W4
    .     1W7   2W6   3W5
    .     .     2W7   3W6
    .     .     .     3W7
    """
    assert_same_grid(build_schedule("zb-h2", ranks=4, microbatches=8), drawing)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_it_is_the_papers_rule_from_2p_less_one_microbatches(ranks: int) -> None:
    for microbatches in range(2 * ranks - 1, 2 * ranks + 4):
        schedule = build_schedule("zb-h2", ranks, microbatches)
        assert schedule == zero_bubble(ranks, microbatches, warmups=2)


@pytest.mark.parametrize("rank", range(4))
def test_weight_gradients_lag_two_backwards_behind_for_each_hop_to_the_first_rank(
    rank: int,
) -> None:
    row = build_schedule("zb-h2", ranks=4, microbatches=8).actions[rank]
    kinds = [action.kind for action in row]
    assert kinds.index(ActionKind.B) == 2 * (3 - rank) + 1
    assert kinds[: kinds.index(ActionKind.W)].count(ActionKind.B) == 2 * rank + 1


def test_few_microbatches_take_as_long_as_their_way_through_the_ranks() -> None:
    """One microbatch: P forwards, P input gradients and a W. Two and three take one round more."""
    assert FACTS.makespan(Shape(ranks=8, chunks_per_rank=1, microbatches=1)) == 17
    assert FACTS.makespan(Shape(ranks=8, chunks_per_rank=1, microbatches=15)) == 3 * 15 + 7
