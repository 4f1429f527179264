from __future__ import annotations

import pytest

from ppframe.errors import ConfigError
from ppframe.schedule import ActionKind, Compute, Overlap, build_schedule
from tests.schedule.drawings import assert_same_grid

DRAWING = """
0F0          .            .            .
0F1          1F0          .            .
0F2          1F1          2F0          .
0F3          1F2          2F1          3F0
0F4          1F3          2F2          4F0
0F5          1F4          5F0          3F1
0F6          6F0          2F3          4F1
7F0          1F5          5F1          3F2
7B0          6F1          2F4          4F2
7W0          6B0          5F2          3F3
7F1          6W0          5B0          4F3
7B1          6F2          5W0          3F4
7W1          6B1          5F3          4BW0
7F2          6W1          (2F5;5BW1)   (4F4;3BW0)
7B2          6F3          (5F4;2BW0)   (3F5;4BW1)
7W2          (1F6;6BW2)   .            (4F5;3BW1)
7F3          (6F4;1BW0)   (2F6;5BW2)   .
(0F7;7BW3)   .            (5F5;2BW1)   (3F6;4BW2)
(7F4;0BW0)   (1F7;6BW3)   .            (4F6;3BW2)
7BW4         (6F5;1BW1)   (2F7;5BW3)   .
(7F5;0BW1)   6BW4         (5F6;2BW2)   (3F7;4BW3)
7BW5         (6F6;1BW2)   5BW4         (4F7;3BW3)
(7F6;0BW2)   6BW5         (5F7;2BW3)   4BW4
7BW6         (6F7;1BW3)   5BW5         3BW4
(7F7;0BW3)   6BW6         2BW4         4BW5
7BW7         1BW4         5BW6         3BW5
0B4          6B7          2B5          4B6
0W4          1B5          5B7          3B6
0B5          6W7          2B6          4B7
0W5          1B6          2W5          3B7
0B6          1W5          2B7          4W6
0W6          1B7          5W7          3W6
0B7          1W6          2W6          4W7
0W7          1W7          2W7          3W7
"""


def test_drawing() -> None:
    assert_same_grid(build_schedule("dualpipe-v", ranks=4, microbatches=8), DRAWING)


@pytest.mark.parametrize(("ranks", "microbatches"), [(1, 2), (3, 6), (4, 11)])
def test_pairs_are_of_a_forward_of_one_chunk_and_a_whole_backward_of_the_other(
    ranks: int, microbatches: int
) -> None:
    schedule = build_schedule("dualpipe-v", ranks, microbatches)
    for rank, row in enumerate(schedule.actions):
        for pair in row:
            if isinstance(pair, Overlap):
                assert (pair.first.kind, pair.second.kind) == (ActionKind.F, ActionKind.BW)
                assert pair.first.stage + pair.second.stage == 2 * ranks - 1
                assert rank in (pair.first.stage, pair.second.stage)


def test_every_backward_but_those_at_the_ends_is_in_a_pair() -> None:
    """Rank r has M - 2 P + r + 1 twice, then P - 1 - r; on the last rank the first is no pair."""
    rows = build_schedule("dualpipe-v", ranks=4, microbatches=10).actions
    counts = [sum(isinstance(action, Overlap) for action in row) for row in rows]
    assert counts == [2 * 3 + 3, 2 * 4 + 2, 2 * 5 + 1, 2 * 6 - 1]


def test_weight_gradients_run_in_the_order_of_their_input_gradients() -> None:
    for row in build_schedule("dualpipe-v", ranks=5, microbatches=10).actions:
        singles = [action for action in row if isinstance(action, Compute)]
        split = [(a.stage, a.microbatch) for a in singles if a.kind is ActionKind.B]
        assert split == [(a.stage, a.microbatch) for a in singles if a.kind is ActionKind.W]


def test_it_needs_two_microbatches_for_each_rank() -> None:
    with pytest.raises(ConfigError, match="nearest that works is 8") as caught:
        build_schedule("dualpipe-v", ranks=4, microbatches=7)
    assert caught.value.path == "microbatches"


def test_it_has_two_stages_on_each_rank() -> None:
    with pytest.raises(ConfigError, match="must be 2 for `dualpipe-v`") as caught:
        build_schedule("dualpipe-v", ranks=4, microbatches=8, chunks_per_rank=3)
    assert caught.value.path == "chunks_per_rank"
