from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, Compute, Schedule, build_schedule
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
    0F4   5F3   6F2   7BW0
    0F5   1F4   6BW0  7F1
    0F6   5BW0  6F3   7BW1
    4BW0  1F5   6BW1  7F2
    0F7   5BW1  2F4   7BW2
    4BW1  1F6   6BW2  7F3
    .     5BW2  2F5   7BW3
    .     1F7   6BW3  3F4
    4F4   5BW3  2F6   3BW0
    4BW2  5F4   2BW0  3F5
    4F5   1BW0  2F7   3BW1
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
    0BW5  1BW6  2BW7  .
    0BW6  1BW7  .     .
    0BW7  .     .     .
    """
    assert_same_grid(build_schedule("interleaved-1f1b", ranks=4, microbatches=8), drawing)


def warmup(schedule: Schedule, rank: int) -> int:
    kinds = [action.kind for action in schedule.actions[rank]]
    return kinds.index(ActionKind.BW) - 1


@pytest.mark.parametrize(("rank", "forwards"), [(0, 10), (1, 8), (2, 6), (3, 4)])
def test_warmup_is_a_group_for_each_chunk_but_one_and_two_for_each_hop(
    rank: int, forwards: int
) -> None:
    """Megatron: (P - r - 1) 2 + (V - 1) P."""
    schedule = build_schedule("interleaved-1f1b", ranks=4, microbatches=8)
    assert warmup(schedule, rank) == forwards


def test_a_group_goes_through_all_chunks_before_the_next() -> None:
    schedule = build_schedule("interleaved-1f1b", ranks=2, microbatches=4, chunks_per_rank=3)
    forwards = [str(a) for a in schedule.actions[0] if a.kind is ActionKind.F]
    first = ["0F0", "0F1", "2F0", "2F1", "4F0", "4F1"]
    assert forwards == [*first, "0F2", "0F3", "2F2", "2F3", "4F2", "4F3"]
    backwards = [str(a) for a in schedule.actions[0] if a.kind is ActionKind.BW]
    assert backwards[:6] == ["4BW0", "4BW1", "2BW0", "2BW1", "0BW0", "0BW1"]


def test_where_rounds_do_not_divide_the_microbatches_larger_groups_come_first() -> None:
    schedule = build_schedule("interleaved-1f1b", ranks=4, microbatches=11)
    forwards = [a for a in schedule.actions[0] if a.kind is ActionKind.F and a.stage == 4]
    order = [a for a in schedule.actions[0] if a.kind is ActionKind.F]
    assert [a.microbatch for a in forwards if isinstance(a, Compute)] == list(range(11))
    # 11 // 4 = 2 groups: of 6 and of 5; the second chunk's first forward comes after the first 6.
    assert order.index(forwards[0]) == 6
    assert order.index(forwards[6]) == 6 + 6 + 5
    assert warmup(schedule, 3) == 6


def test_the_second_chunk_starts_when_the_first_group_has_gone_through_the_first() -> None:
    schedule = build_schedule("interleaved-1f1b", ranks=4, microbatches=8)
    assert_before(schedule, "3F0", "4F0")
    assert_before(schedule, "7BW0", "6BW0")
    assert_before(schedule, "4BW0", "3BW0")
