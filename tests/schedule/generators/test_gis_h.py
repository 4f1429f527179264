from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, Shape, build_schedule
from ppframe.schedule.generators.gis_h import FACTS
from tests.schedule.drawings import assert_same_grid

DRAWING = """
0F0   .     .     .
0F1   1F0   .     .
.     1F1   2F0   .
.     .     2F1   3F0
4F0   .     .     3F1
4F1   5F0   .     .
0F2   5F1   6F0   .
0F3   1F2   6F1   7F0
.     .     .     7B0
.     .     6B0   7W0
.     5B0   6W0   7F1
4B0   5W0   2F2   7B1
4W0   1F3   6B1   7W1
.     5B1   6W1   3F2
4F2   5W1   2F3   3B0
4B1   5F2   2B0   3W0
4W1   1B0   2W0   3F3
4F3   1W0   6F2   3B1
0B0   5F3   2B1   3W1
0W0   1B1   2W1   7F2
0F4   1W1   6F3   7B2
0B1   1F4   6B2   7W2
0W1   5B2   6W2   7F3
0F5   5W2   2F4   7B3
4B2   1F5   6B3   7W3
4W2   5B3   6W3   3F4
4F4   5W3   2F5   3B2
4B3   5F4   2B2   3W2
4W3   1B2   2W2   3F5
4F5   1W2   6F4   3B3
0B2   5F5   2B3   3W3
0W2   1B3   2W3   7F4
0F6   1W3   6F5   7B4
0B3   1F6   6B4   7W4
0W3   5B4   6W4   7F5
0F7   5W4   2F6   7B5
4B4   1F7   6B5   7W5
4W4   5B5   6W5   3F6
4F6   5W5   2F7   3B4
4B5   5F6   2B4   3W4
4W5   1B4   2W4   3F7
4F7   1W4   6F6   3B5
0B4   5F7   2B5   3W5
0W4   1B5   2W5   7F6
0B5   1W5   6F7   7B6
0W5   .     6B6   7W6
.     5B6   6W6   7F7
4B6   5W6   .     7B7
4W6   .     6B7   7W7
.     5B7   6W7   3B6
4B7   5W7   2B6   3W6
4W7   1B6   2W6   3B7
0B6   1W6   2B7   3W7
0W6   1B7   2W7   .
0B7   1W7   .     .
0W7   .     .     .
"""


def test_drawing() -> None:
    assert_same_grid(build_schedule("gis-h", ranks=4, microbatches=8), DRAWING)


@pytest.mark.parametrize(
    ("ranks", "microbatches", "size"), [(4, 8, 2), (4, 5, 3), (5, 9, 3), (5, 5, 5), (6, 11, 4)]
)
def test_groups_are_of_half_as_many_microbatches_as_ranks_or_some_more(
    ranks: int, microbatches: int, size: int
) -> None:
    row = build_schedule("gis-h", ranks, microbatches).actions[0]
    forwards = [action for action in row if action.kind is ActionKind.F]
    assert [action.stage for action in forwards].index(ranks) == size


@pytest.mark.parametrize("ranks", range(1, 12))
def test_no_group_is_larger_than_the_number_of_ranks(ranks: int) -> None:
    """With groups of P it would be `gis`; the paper's limits for g are P / 2 and P."""
    for microbatches in range(1, 50):
        first, *_ = FACTS.peak_in_flight(Shape(ranks, 2, microbatches)) or ()
        assert first <= min(2 * microbatches, ranks + ranks)


def test_it_is_gis_where_one_group_takes_all_microbatches() -> None:
    rows = build_schedule("gis-h", ranks=5, microbatches=5).actions
    assert rows == build_schedule("gis", ranks=5, microbatches=5).actions
