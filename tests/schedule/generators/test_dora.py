from __future__ import annotations

from itertools import accumulate

import pytest

from ppframe.schedule import Action, ActionKind, Shape, build_schedule
from ppframe.schedule.generators.dora import FACTS
from tests.schedule.drawings import assert_before, assert_same_grid


def test_drawing() -> None:
    drawing = """
    0F0   .     .     .
    0F1   1F0   .     .
    0F2   1F1   2F0   .
    0F3   1F2   2F1   3F0
    4F0   1F3   2F2   3F1
    4F1   5F0   2F3   3F2
    4F2   5F1   6F0   3F3
    4F3   5F2   6F1   7F0
    0F4   5F3   6F2   7B0
    0F5   1F4   6B0   7F1
    0F6   5B0   6F3   7B1
    4BW0  1F5   6B1   7F2
    0F7   5B1   2F4   7B2
    4BW1  1F6   6B2   7F3
    .     5BW2  2F5   7B3
    .     1F7   6B3   3F4
    4F4   5BW3  2F6   3B0
    4BW2  5F4   2BW0  3F5
    4F5   1BW0  2F7   3B1
    4BW3  5F5   2BW1  3F6
    4F6   1BW1  6F4   3BW2
    0BW0  5F6   2BW2  3F7
    4F7   1BW2  6F5   3BW3
    0BW1  5F7   2BW3  7F4
    0BW2  1BW3  6F6   7BW4
    0BW3  .     6BW4  7F5
    .     5BW4  6F7   7BW5
    4BW4  .     6BW5  7F6
    .     5BW5  .     7BW6
    4BW5  .     6BW6  7F7
    .     5BW6  .     7BW7
    4BW6  .     6BW7  3BW4
    .     5BW7  2BW4  3BW5
    4BW7  1BW4  2BW5  3BW6
    0BW4  1BW5  2BW6  3BW7
    0BW5  1BW6  2BW7  7W0
    0BW6  1BW7  6W0   7W1
    0BW7  5W0   6W1   7W2
    .     5W1   6W2   7W3
    .     .     6W3   3W0
    .     .     .     3W1
    """
    assert_same_grid(build_schedule("dora", ranks=4, microbatches=8), drawing)


@pytest.mark.parametrize(("microbatches", "held"), [(8, [0, 2, 4, 6]), (4, [0, 0, 2, 3])])
def test_weight_gradients_held_back_grow_with_the_rank(microbatches: int, held: list[int]) -> None:
    """2 r of them; r where M = P, but no more than the steady state has backwards.

    For M = P = 4 and V = 2 the steady state of rank r has 8 - min(8, 4 + 2 (3 - r)) of them: 0, 0,
    2 and 4.
    """
    schedule = build_schedule("dora", ranks=4, microbatches=microbatches)
    for row, count in zip(schedule.actions, held, strict=True):
        kinds = [action.kind for action in row]
        assert kinds.count(ActionKind.B) == kinds.count(ActionKind.W) == count
        assert set(kinds[len(kinds) - count :]) <= {ActionKind.W}


def test_early_ranks_take_backwards_ahead_of_the_second_chunk() -> None:
    """For P = 8, ceil((8 - 4) / 2) - r: two on rank 0, one on rank 1."""
    schedule = build_schedule("dora", ranks=8, microbatches=16)
    for rank, ahead in ((0, 2), (1, 1), (2, 0)):
        row = schedule.actions[rank]
        warmup = 8 + 2 * (7 - rank)
        steady = [a for a in row[warmup:] if a.kind is not ActionKind.W]
        second = next(
            i for i, a in enumerate(steady) if a.kind is ActionKind.F and a.stage == 8 + rank
        )
        forwards = sum(a.kind is ActionKind.F for a in steady[:second])
        assert second - forwards == forwards + ahead


def test_held_weight_gradients_run_in_the_order_of_their_backwards() -> None:
    row = build_schedule("dora", ranks=2, microbatches=4).actions[1]
    assert [str(action) for action in row[-2:]] == ["3W0", "3W1"]
    assert_before(build_schedule("dora", ranks=2, microbatches=4), "3B0", "3W0")


def most_in_flight(row: tuple[Action, ...]) -> int:
    steps = {ActionKind.F: 1, ActionKind.B: 0, ActionKind.W: -1, ActionKind.BW: -1}
    return max(accumulate(steps[action.kind] for action in row))


@pytest.mark.parametrize("ranks", [7, 8])
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_peak_in_flight_counts_what_is_held_back_and_what_is_taken_ahead(
    ranks: int, chunks: int
) -> None:
    for microbatches in range(1, 20):
        schedule = build_schedule("dora", ranks, microbatches, chunks_per_rank=chunks)
        counted = tuple(most_in_flight(row) for row in schedule.actions)
        assert FACTS.peak_in_flight(Shape(ranks, chunks, microbatches)) == counted
