from __future__ import annotations

from ppframe.schedule import ActionKind, build_schedule
from tests.schedule.drawings import assert_before, assert_same_grid


def test_drawing() -> None:
    drawing = """
    0F0   .     .     .
    0F1   1F0   .     .
    0F2   1F1   2F0   .
    0F3   1F2   2F1   3F0
    0F4   1F3   2F2   3F1
    0F5   1F4   2F3   3F2
    0F6   1F5   2F4   3F3
    0F7   1F6   2F5   3F4
    .     1F7   2F6   3F5
    .     .     2F7   3F6
    .     .     .     3F7
    .     .     .     3BW0
    .     .     2BW0  3BW1
    .     1BW0  2BW1  3BW2
    0BW0  1BW1  2BW2  3BW3
    0BW1  1BW2  2BW3  3BW4
    0BW2  1BW3  2BW4  3BW5
    0BW3  1BW4  2BW5  3BW6
    0BW4  1BW5  2BW6  3BW7
    0BW5  1BW6  2BW7  .
    0BW6  1BW7  .     .
    0BW7  .     .     .
    """
    assert_same_grid(build_schedule("gpipe", ranks=4, microbatches=8), drawing)


def test_every_rank_runs_all_forwards_before_its_first_backward() -> None:
    schedule = build_schedule("gpipe", ranks=3, microbatches=5)
    for row in schedule.actions:
        assert [action.kind for action in row] == [ActionKind.F] * 5 + [ActionKind.BW] * 5


def test_backwards_run_from_the_first_microbatch_up() -> None:
    schedule = build_schedule("gpipe", ranks=3, microbatches=5)
    assert [str(action) for action in schedule.actions[1][5:]] == [f"1BW{m}" for m in range(5)]
    assert_before(schedule, "2BW0", "1BW0")
    assert_before(schedule, "1BW3", "1BW4")
