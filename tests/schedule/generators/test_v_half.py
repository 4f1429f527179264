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
    5B1  1F2  3W0
    5W1  .    2B0
    .    1B0  2W0
    0B0  4B1  2F2
    0W0  1W0  3F2
    0F3  4F2  3B1
    5F2  4W1  3W1
    5B2  1F3  2B1
    5W2  1B1  2W1
    0B1  4B2  2F3
    0W1  1W1  3F3
    0F4  4F3  3B2
    5F3  4W2  3W2
    5B3  1F4  2B2
    5W3  1B2  2W2
    0B2  4B3  2F4
    0W2  1W2  3F4
    0F5  4F4  3B3
    5F4  4W3  3W3
    5B4  1F5  2B3
    5W4  1B3  2W3
    0B3  4B4  2F5
    0W3  1W3  3F5
    .    4F5  3B4
    5F5  4W4  2B4
    5B5  1B4  3W4
    0B4  4B5  2W4
    5W5  1W4  3B5
    0W4  4W5  2B5
    .    1B5  3W5
    0B5  1W5  2W5
    0W5  .    .
    """
    assert_same_grid(build_schedule("v-half", ranks=3, microbatches=6), drawing)


@pytest.mark.parametrize("ranks", [3, 4, 5, 6, 8, 9, 12])
def test_bubble_of_the_paper(ranks: int) -> None:
    """1.5 P - 3.5 times what a rank needs for F of a microbatch, 1.5 P - 2 where P is odd."""
    microbatches = 3 * ranks
    report = simulate(build_schedule("v-half", ranks, microbatches), UNIT)
    span = 6 * microbatches / (1 - report.span_bubble)
    bubble = 2 * (1.5 * ranks - (2 if ranks % 2 else 3.5))  # in stages, two for a rank
    assert span - 6 * microbatches == pytest.approx(bubble)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6, 8, 9, 16])
def test_memory_of_the_paper(ranks: int) -> None:
    """Of two stages floor((P + 2) / 2), half of 1F1B's P."""
    report = simulate(build_schedule("v-half", ranks, 2 * ranks), UNIT)
    assert max(report.peak_activation) / 2 == (ranks + 2) // 2


@pytest.mark.parametrize(
    ("f", "b", "w", "is_free"),
    [(4, 4, 4, True), (5, 4, 3, True), (4, 5, 2, True), (8, 4, 4, False), (4, 8, 4, False)],
)
def test_steady_state_has_no_bubble_as_long_as_no_part_is_too_long(
    f: float, b: float, w: float, is_free: bool
) -> None:
    """It has none if and only if W + 2 B >= 2 F and W + 2 F >= 2 B."""
    assert is_free == (w + 2 * b >= 2 * f and w + 2 * f >= 2 * b)
    once, again = (
        simulate(build_schedule("v-half", 4, microbatches), Cost(f, b, w)).makespan
        for microbatches in (24, 48)
    )
    assert (again - once == 24 * 2 * (f + b + w)) == is_free
