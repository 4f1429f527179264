from __future__ import annotations

from ppframe.schedule import build_schedule
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
    4F0   1F7   2F6   3F5
    4F1   5F0   2F7   3F6
    4F2   5F1   6F0   3F7
    4F3   5F2   6F1   7F0
    4F4   5F3   6F2   7F1
    4F5   5F4   6F3   7F2
    4F6   5F5   6F4   7F3
    4F7   5F6   6F5   7F4
    .     5F7   6F6   7F5
    .     .     6F7   7F6
    .     .     .     7F7
    .     .     .     7BW7
    .     .     6BW7  7BW6
    .     5BW7  6BW6  7BW5
    4BW7  5BW6  6BW5  7BW4
    4BW6  5BW5  6BW4  7BW3
    4BW5  5BW4  6BW3  7BW2
    4BW4  5BW3  6BW2  7BW1
    4BW3  5BW2  6BW1  7BW0
    4BW2  5BW1  6BW0  3BW7
    4BW1  5BW0  2BW7  3BW6
    4BW0  1BW7  2BW6  3BW5
    0BW7  1BW6  2BW5  3BW4
    0BW6  1BW5  2BW4  3BW3
    0BW5  1BW4  2BW3  3BW2
    0BW4  1BW3  2BW2  3BW1
    0BW3  1BW2  2BW1  3BW0
    0BW2  1BW1  2BW0  .
    0BW1  1BW0  .     .
    0BW0  .     .     .
    """
    assert_same_grid(build_schedule("looped-bfs", ranks=4, microbatches=8), drawing)


def test_each_chunk_runs_all_its_microbatches_before_the_next() -> None:
    row = build_schedule("looped-bfs", ranks=2, microbatches=3, chunks_per_rank=3).actions[1]
    blocks = [row[start : start + 3] for start in range(0, len(row), 3)]
    assert [block[0].stage for block in blocks] == [1, 3, 5, 5, 3, 1]
    assert all(len({action.stage for action in block}) == 1 for block in blocks)


def test_backwards_run_from_the_last_microbatch_down() -> None:
    schedule = build_schedule("looped-bfs", ranks=2, microbatches=3)
    assert [str(action) for action in schedule.actions[1][6:9]] == ["3BW2", "3BW1", "3BW0"]
    assert_before(schedule, "3BW2", "2BW2")
    assert_before(schedule, "2BW2", "1BW2")
