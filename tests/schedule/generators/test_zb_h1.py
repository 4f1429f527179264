from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, Shape, build_schedule
from ppframe.schedule.generators.zb_h1 import FACTS
from tests.schedule.drawings import assert_same_grid
from tests.simulator.shapes import zero_bubble


def test_drawing() -> None:
    drawing = """
    0F0   .     .     .
    0F1   1F0   .     .
    0F2   1F1   2F0   .
    0F3   1F2   2F1   3F0
    .     .     .     3B0
    .     .     2B0   3F1
    .     1B0   2F2   3B1
    0B0   1F3   2B1   3F2
    0W0   1B1   2F3   3B2
    0F4   1W0   2B2   3F3
    0B1   1F4   2W0   3B3
    0W1   1B2   2F4   3W0
    0F5   1W1   2B3   3F4
    0B2   1F5   2W1   3B4
    0W2   1B3   2F5   3W1
    0F6   1W2   2B4   3F5
    0B3   1F6   2W2   3B5
    0W3   1B4   2F6   3W2
    0F7   1W3   2B5   3F6
    0B4   1F7   2W3   3B6
    0W4   1B5   2F7   3W3
    0B5   1W4   2B6   3F7
    0W5   1B6   2W4   3B7
    0B6   1W5   2B7   3W4
    0W6   1B7   2W5   3W5
    0B7   1W6   2W6   3W6
    0W7   1W7   2W7   3W7
    """
    assert_same_grid(build_schedule("zb-h1", ranks=4, microbatches=8), drawing)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_it_is_the_papers_rule_from_as_many_microbatches_as_ranks(ranks: int) -> None:
    for microbatches in range(ranks, ranks + 4):
        schedule = build_schedule("zb-h1", ranks, microbatches)
        assert schedule == zero_bubble(ranks, microbatches, warmups=1)


def test_input_gradients_are_in_the_places_of_the_backwards_of_1f1b() -> None:
    """Without W, and BW for B, the lists are those of 1F1B."""
    split, whole = (build_schedule(name, ranks=4, microbatches=9) for name in ("zb-h1", "1f1b"))
    for row, other in zip(split.actions, whole.actions, strict=True):
        kinds = [action.kind for action in row if action.kind is not ActionKind.W]
        assert [k is ActionKind.F for k in kinds] == [a.kind is ActionKind.F for a in other]


@pytest.mark.parametrize("rank", range(4))
def test_weight_gradients_lag_one_backward_behind_for_each_hop_to_the_first_rank(rank: int) -> None:
    row = build_schedule("zb-h1", ranks=4, microbatches=8).actions[rank]
    kinds = [action.kind for action in row]
    assert kinds[: kinds.index(ActionKind.W)].count(ActionKind.B) == rank + 1


def test_few_microbatches_take_as_long_as_their_way_through_the_ranks() -> None:
    """(M + P - 1) (F + B) + W for M ≤ P; with M = 2 and P = 8 that is 9 · 2 + 1."""
    assert FACTS.makespan(Shape(ranks=8, chunks_per_rank=1, microbatches=2)) == 19
    assert FACTS.makespan(Shape(ranks=8, chunks_per_rank=1, microbatches=8)) == 31
