from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, build_schedule
from tests.schedule.drawings import assert_same_grid


def test_drawing() -> None:
    drawing = """
    0F0    .      .      .
    0F1    1F0    .      .
    0F2    1F1    2F0    .
    0F3    1F2    2F1    3F0
    0F4    1F3    2F2    3BW0
    0F5    1F4    2BW0   3F1
    0F6    1BW0   2F3    3BW1
    0BW0   1F5    2BW1   3F2
    0F7    1BW1   2F4    3BW2
    0BW1   1F6    2BW2   3F3
    .      1BW2   2F5    3BW3
    0BW2   1F7    2BW3   3F4
    .      1BW3   2F6    3BW4
    0BW3   .      2BW4   3F5
    .      1BW4   2F7    3BW5
    0BW4   .      2BW5   3F6
    .      1BW5   .      3BW6
    0BW5   .      2BW6   3F7
    .      1BW6   .      3BW7
    0BW6   .      2BW7   .
    .      1BW7   .      .
    0BW7   .      .      .
    """
    assert_same_grid(build_schedule("eager-1f1b", ranks=4, microbatches=8), drawing)


@pytest.mark.parametrize("microbatches", [1, 5, 8])
def test_a_rank_warms_up_with_two_forwards_for_each_hop_to_the_last(microbatches: int) -> None:
    schedule = build_schedule("eager-1f1b", ranks=4, microbatches=microbatches)
    for row, hops in zip(schedule.actions, (3, 2, 1, 0), strict=True):
        first = [action.kind for action in row].index(ActionKind.BW)
        assert first == min(microbatches, 2 * hops + 1)


def test_it_is_1f1b_on_the_last_rank() -> None:
    eager, plain = (
        build_schedule(name, ranks=3, microbatches=7) for name in ("eager-1f1b", "1f1b")
    )
    assert eager.actions[2] == plain.actions[2]
