from __future__ import annotations

import pytest

from ppframe.schedule import build_schedule
from ppframe.simulator import Cost, simulate
from tests.schedule.drawings import assert_same_grid

UNIT = Cost(1, 1, 1)


def test_drawing() -> None:
    drawing = """
    0F0  .    .
    0F1  1F0  .
    0F2  1F1  2F0
    .    .    3F0
    .    4F0  2F1
    5F0  .    3F1
    5B0  4F1  .
    5W0  4B0  .
    5F1  4W0  3B0
    .    .    2B0
    .    1B0  3W0
    0B0  1F2  2W0
    5B1  1W0  2F2
    0W0  4B1  3F2
    5W1  4F2  3B1
    5F2  4W1  2B1
    0F3  1B1  3W1
    0B1  1F3  2W1
    5B2  1W1  2F3
    0W1  4B2  3F3
    5W2  4F3  3B2
    5F3  4W2  2B2
    0F4  1B2  3W2
    0B2  1F4  2W2
    5B3  1W2  2F4
    0W2  4B3  3F4
    5W3  4F4  3B3
    5F4  4W3  2B3
    0F5  1B3  3W3
    0B3  1F5  2W3
    5B4  1W3  2F5
    0W3  4B4  3F5
    5W4  4F5  3B4
    5F5  4W4  2B4
    5B5  1B4  3W4
    0B4  4B5  2W4
    5W5  1W4  3B5
    0W4  4W5  2B5
    .    1B5  3W5
    0B5  1W5  2W5
    0W5  .    .
    """
    assert_same_grid(build_schedule("v-min", ranks=3, microbatches=6), drawing)


@pytest.mark.parametrize("ranks", [2, 4, 5, 6, 8, 9, 12])
def test_bubble_of_the_paper(ranks: int) -> None:
    """2 P - 2.5 times what a rank needs for F of a microbatch, 1 less where 3 divides P."""
    microbatches = 3 * ranks
    report = simulate(build_schedule("v-min", ranks, microbatches), UNIT)
    span = 6 * microbatches / (1 - report.span_bubble)
    bubble = 2 * (2 * ranks - 2.5) - 2 * (ranks % 3 == 0)  # in stages, two for a rank
    assert span - 6 * microbatches == pytest.approx(bubble)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6, 8, 9, 16])
def test_memory_of_the_paper(ranks: int) -> None:
    """Of two stages floor((P + 4) / 3), a third of 1F1B's P."""
    report = simulate(build_schedule("v-min", ranks, 2 * ranks), UNIT)
    assert max(report.peak_activation) / 2 == (ranks + 4) // 3


@pytest.mark.parametrize(("f", "b", "w"), [(1, 1.5, 1), (1.5, 1, 1), (1, 1, 0.5)])
def test_every_microbatch_leaves_a_bubble_where_times_differ(f: float, b: float, w: float) -> None:
    once, again = (
        simulate(build_schedule("v-min", 4, microbatches), Cost(f, b, w)).makespan
        for microbatches in (16, 32)
    )
    assert again - once >= 16 * (2 * (f + b + w) + 1)
