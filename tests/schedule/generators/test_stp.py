from __future__ import annotations

import pytest

from ppframe.errors import ConfigError
from ppframe.schedule import Overlap, build_schedule
from tests.schedule.drawings import assert_same_grid

DRAWING = """
0F0          .             .            .
0F1          1F0           .            .
0F2          1F1           2F0          .
0F3          1F2           2F1          3F0
0F4          1F3           2F2          4F0
0F5          1F4           5F0          3F1
0F6          6F0           2F3          4F1
7F0          1F5           5F1          3F2
0F7          6F1           2F4          4F2
(7F1;7B0)    (1F6;1F7)     5F2          3F3
(0F8;7W0)    (6F2;6B0)     2F5          4F3
(7F2;7B1)    (1F8;6W0)     (2F6;2F7)    (3F4;3F5)
(0F9;7W1)    .             (5F3;5B0)    (3F6;3F7)
.            (6F3;6B1)     (2F8;5W0)    (4F4;4BW0)
(7F3;7B2)    (1F9;6W1)     (5F4;5BW1)   (3F8;3BW0)
(0F10;7W2)   (6F4;6BW2)    (2F9;2BW0)   (4F5;4BW1)
(7F4;7BW3)   (1F10;1BW0)   (5F5;5BW2)   (3F9;3BW1)
0BW0         (6F5;6B3)     (2F10;2B1)   (4F6;4B2)
(7F5;7B4)    1BW1          (5F6;5B3)    (3F10;3B2)
0BW1         (6F6;6B4)     2BW2         (4F7;4B3)
(7F6;7B5)    1BW2          (5F7;5B4)    3BW3
0BW2         (6F7;6B5)     2BW3         (4F8;4B4)
(7F7;7B6)    1BW3          (5F8;5B5)    3BW4
0BW3         (6F8;6B6)     2BW4         (4F9;4B5)
(7F8;7B7)    1BW4          (5F9;5B6)    3BW5
0BW4         (6F9;6B7)     2BW5         (4F10;4B6)
(7F9;7B8)    1BW5          (5F10;5B7)   3BW6
0BW5         (6F10;6B8)    2BW6         4BW7
(7F10;7B9)   1BW6          5BW8         3BW7
0BW6         6BW9          2BW7         4BW8
7BW10        1BW7          5BW9         3BW8
0BW7         6BW10         2BW8         4BW9
7W4          1BW8          5BW10        3BW9
7W5          6W3           2BW9         4BW10
0BW8         6W4           2W1          3BW10
7W6          1BW9          5W3          4W2
7W7          6W5           2BW10        3W2
0BW9         6W6           5W4          4W3
7W8          1BW10         5W5          4W4
7W9          6W7           5W6          4W5
0BW10        6W8           5W7          4W6
"""


def test_drawing() -> None:
    assert_same_grid(build_schedule("stp", ranks=4, microbatches=11), DRAWING)


def test_pairs_are_of_forwards_with_each_other_with_weight_gradients_and_with_backwards() -> None:
    """Rank r of P = 4, M = 12: (r + 1) div 2 of two forwards, P - 1 - r with a W, the rest with
    a backward.
    """
    rows = build_schedule("stp", ranks=4, microbatches=12).actions
    for rank, row in enumerate(rows):
        pairs = [action for action in row if isinstance(action, Overlap)]
        kinds = [(pair.first.kind.value, pair.second.kind.value) for pair in pairs]
        assert kinds.count(("F", "F")) == (rank + 1) // 2
        assert kinds.count(("F", "W")) == 3 - rank
        # All but the forwards that start alone, in a pair of their own, or with a W.
        alone = 2 * (3 - rank) + 2 * (rank + 1) + (rank + 1) % 2
        others = 24 - alone - 2 * ((rank + 1) // 2) - (3 - rank)
        assert kinds.count(("F", "B")) + kinds.count(("F", "BW")) == others


def test_a_backward_in_a_pair_is_split_where_the_next_rank_waits_for_it() -> None:
    rows = build_schedule("stp", ranks=3, microbatches=10).actions
    split = [sum("B" in str(a) and "BW" not in str(a) for a in row) for row in rows]
    # P - 1 - r at the start, r at the end of the steady state, 2 P - r - 2 after it.
    assert split == [2 + 0 + 4, 1 + 1 + 3, 0 + 2 + 2]


def test_it_needs_three_microbatches_less_one_for_each_rank() -> None:
    with pytest.raises(ConfigError, match="nearest that works is 11") as caught:
        build_schedule("stp", ranks=4, microbatches=10)
    assert caught.value.path == "microbatches"
