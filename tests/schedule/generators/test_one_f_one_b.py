from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, build_schedule
from tests.schedule.drawings import assert_before, assert_same_grid


def test_drawing() -> None:
    drawing = """
    0F0   .     .     .
    0F1   1F0   .     .
    0F2   1F1   2F0   .
    0F3   1F2   2F1   3F0
    .     .     .     3BW0
    .     .     2BW0  3F1
    .     1BW0  2F2   3BW1
    0BW0  1F3   2BW1  3F2
    0F4   1BW1  2F3   3BW2
    0BW1  1F4   2BW2  3F3
    0F5   1BW2  2F4   3BW3
    0BW2  1F5   2BW3  3F4
    0F6   1BW3  2F5   3BW4
    0BW3  1F6   2BW4  3F5
    0F7   1BW4  2F6   3BW5
    0BW4  1F7   2BW5  3F6
    .     1BW5  2F7   3BW6
    0BW5  .     2BW6  3F7
    .     1BW6  .     3BW7
    0BW6  .     2BW7  .
    .     1BW7  .     .
    0BW7  .     .     .
    """
    assert_same_grid(build_schedule("1f1b", ranks=4, microbatches=8), drawing)


def test_last_rank_starts_with_its_backward_after_one_forward() -> None:
    schedule = build_schedule("1f1b", ranks=4, microbatches=8)
    assert [str(action) for action in schedule.actions[3][:4]] == ["3F0", "3BW0", "3F1", "3BW1"]


@pytest.mark.parametrize(("rank", "warmup"), [(0, 4), (1, 3), (2, 2), (3, 1)])
def test_a_rank_runs_a_forward_for_each_rank_from_itself_on_before_a_backward(
    rank: int, warmup: int
) -> None:
    kinds = [a.kind for a in build_schedule("1f1b", ranks=4, microbatches=8).actions[rank]]
    assert kinds.index(ActionKind.BW) == warmup


def test_with_fewer_microbatches_than_ranks_the_first_ranks_run_as_gpipe() -> None:
    schedule = build_schedule("1f1b", ranks=4, microbatches=2)
    assert [str(action) for action in schedule.actions[0]] == ["0F0", "0F1", "0BW0", "0BW1"]
    assert [str(action) for action in schedule.actions[2]] == ["2F0", "2F1", "2BW0", "2BW1"]
    assert [str(action) for action in schedule.actions[3]] == ["3F0", "3BW0", "3F1", "3BW1"]


def test_the_fifth_forward_of_the_first_rank_waits_for_the_first_backward() -> None:
    schedule = build_schedule("1f1b", ranks=4, microbatches=8)
    assert_before(schedule, "0BW0", "0F4")
    assert_before(schedule, "3BW0", "2BW0")
