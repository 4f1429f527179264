from __future__ import annotations

import pytest

from ppframe.schedule import ActionKind, Compute, build_schedule
from tests.schedule.drawings import assert_same_grid


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
    assert_same_grid(build_schedule("dora-dfs", ranks=4, microbatches=8), drawing)


def straightforward(ranks: int, microbatches: int, chunks: int) -> list[list[str]]:
    """The rule of the reference: list F, B and W, then join B and W that are neighbours."""
    rounds = max(microbatches // ranks, 1)
    per_round = microbatches // rounds
    total = microbatches * chunks
    lists = []
    for rank in range(ranks):
        warmup = min(total, (chunks - 1) * per_round + 2 * (ranks - 1 - rank))
        count = {"F": [0] * chunks, "B": [0] * chunks}

        def take(kind: str, number: int, rank: int = rank, count: dict = count) -> tuple[int, int]:
            chunk = number // per_round % chunks
            chunk = chunk if kind == "F" else chunks - 1 - chunk
            count[kind][chunk] += 1
            return chunk * ranks + rank, count[kind][chunk] - 1

        flat: list[tuple[str, tuple[int, int]]] = [("F", take("F", n)) for n in range(warmup)]
        for number in range(total):
            if warmup + number < total:
                flat.append(("F", take("F", warmup + number)))
            pair = take("B", number)
            flat += [("B", pair), ("W", pair)]
        names = [f"{stage}{kind}{microbatch}" for kind, (stage, microbatch) in flat]
        joined = " ".join(names)
        for stage, microbatch in {pair for kind, pair in flat if kind == "B"}:
            both = f"{stage}B{microbatch} {stage}W{microbatch}"
            joined = (joined + " ").replace(both + " ", f"{stage}BW{microbatch} ").strip()
        lists.append(joined.split())
    return lists


@pytest.mark.parametrize("chunks", [1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_order_is_that_of_the_reference_where_it_runs(ranks: int, chunks: int) -> None:
    for microbatches in range(1, 25):
        if microbatches % max(microbatches // ranks, 1):
            continue  # refused there
        schedule = build_schedule("dora-dfs", ranks, microbatches, chunks_per_rank=chunks)
        assert [list(map(str, row)) for row in schedule.actions] == straightforward(
            ranks, microbatches, chunks
        )


def test_both_parts_of_every_backward_are_joined() -> None:
    schedule = build_schedule("dora-dfs", ranks=3, microbatches=7)
    kinds = {action.kind for row in schedule.actions for action in row}
    assert kinds == {ActionKind.F, ActionKind.BW}
    assert all(isinstance(action, Compute) for row in schedule.actions for action in row)
