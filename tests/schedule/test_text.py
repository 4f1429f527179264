from __future__ import annotations

import pytest

from ppframe.schedule import build_schedule, forward_only, grid, lower
from ppframe.schedule.excerpt import excerpt
from tests.schedule.drawings import assert_same_grid, compute, lowered, rows


def test_rows_are_steps_and_columns_ranks() -> None:
    assert grid(compute("0F0 0BW0", "1F0 1BW0")).splitlines() == [
        "step  rank 0  rank 1",
        "   0  0F0",
        "   1          1F0",
        "   2          1BW0",
        "   3  0BW0",
    ]


def test_the_two_ends_of_a_message_stand_in_one_line() -> None:
    drawing = """
        0F0       .
        0SEND_F0  1RECV_F0
        .         1F0
        .         1BW0
        0RECV_B0  1SEND_B0
        0BW0      .
    """
    assert_same_grid(lower(compute("0F0 0BW0", "1F0 1BW0")), drawing)


def test_exchanges_and_reductions_are_drawn() -> None:
    schedule = lowered(
        "0F0 0SEND_F0 0F1 0SEND_F1_0RECV_B0 0BW0 0RECV_B1 0BW1 0REDUCE",
        "1RECV_F0 1F0 1BW0 1SEND_B0_1RECV_F1 1F1 1BW1 1SEND_B1 1REDUCE",
    )
    drawing = """
        0F0                .
        0SEND_F0           1RECV_F0
        0F1                1F0
        .                  1BW0
        0SEND_F1_0RECV_B0  1SEND_B0_1RECV_F1
        0BW0               1F1
        .                  1BW1
        0RECV_B1           1SEND_B1
        0BW1               1REDUCE
        0REDUCE            .
    """
    assert_same_grid(schedule, drawing)


def test_pairs_take_one_step() -> None:
    assert_same_grid(compute("0F0 (0F1;0BW0) 0BW1"), "0F0\n(0F1;0BW0)\n0BW1")


@pytest.mark.parametrize("text", ["0BW0 0F0", "0F0", "0F7", "9F0 0F0 0BW0", "0W0"])
def test_what_is_not_legal_is_drawn_as_it_is_written(text: str) -> None:
    assert_same_grid(compute(text), "\n".join(text.split()))
    assert_same_grid(lowered(text), "\n".join(text.split()))


def test_a_schedule_of_nothing_is_a_heading() -> None:
    assert grid(compute("")) == "step  rank 0"


def test_drawing_does_not_change_the_schedule() -> None:
    schedule = forward_only(build_schedule("gpipe", ranks=2, microbatches=2), 2)
    before = schedule.actions
    grid(schedule)
    assert schedule.actions is before


def test_an_excerpt_marks_the_place() -> None:
    table = rows("0F0 0BW0", "1F0 1BW0")
    assert excerpt(table, 1, 0).splitlines() == [
        "step  rank 0  rank 1",
        "   0  0F0     >1F0<",
        "   1  0BW0    1BW0",
    ]
    assert excerpt(table, 0, 2).splitlines()[-1] == "   2  ><"


def test_an_excerpt_of_a_huge_schedule_is_small() -> None:
    schedule = build_schedule("1f1b", ranks=64, microbatches=200)
    text = excerpt(schedule.actions, 30, 150)
    assert len(text.splitlines()) == 1 + 13
    assert text.splitlines()[0].split()[2::2] == [str(rank) for rank in range(24, 37)]
    assert f">{schedule.actions[30][150]}<" in text
