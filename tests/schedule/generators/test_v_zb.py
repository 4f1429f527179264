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
    0F3  1F2  3F0
    0F4  4F0  2F1
    5F0  1F3  3F1
    5B0  4F1  2F2
    5W0  4B0  3F2
    5F1  4W0  3B0
    5B1  4F2  2B0
    5W1  4B1  3W0
    5F2  1B0  2W0
    5B2  4W1  2F3
    0B0  1W0  3F3
    5W2  1F4  3B1
    0W0  4F3  2B1
    0F5  4B2  3W1
    5F3  1B1  2W1
    5B3  4W2  2F4
    0B1  1W1  3F4
    5W3  1F5  3B2
    0W1  4F4  2B2
    5F4  4B3  3W2
    5B4  1B2  2W2
    0B2  4W3  2F5
    5W4  1W2  3F5
    0W2  4F5  3B3
    5F5  4B4  2B3
    5B5  1B3  3B4
    0B3  4B5  2B4
    5W5  1B4  3B5
    0B4  4W4  2B5
    0W3  1B5  3W3
    0B5  1W3  2W3
    0W4  4W5  3W4
    0W5  1W4  2W4
    .    1W5  3W5
    .    .    2W5
    """
    assert_same_grid(build_schedule("v-zb", ranks=3, microbatches=6), drawing)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8, 11])
def test_no_rank_waits_between_its_ends(ranks: int) -> None:
    for microbatches in (2 * ranks, 3 * ranks + 1):
        report = simulate(build_schedule("v-zb", ranks, microbatches), UNIT)
        assert report.span_bubble == 0
        assert report.idle == (ranks - 1,) * ranks


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8, 16])
def test_all_ranks_hold_as_much_as_the_first_of_1f1b(ranks: int) -> None:
    report = simulate(build_schedule("v-zb", ranks, 2 * ranks), UNIT)
    assert [peak / 2 for peak in report.peak_activation] == [ranks] * ranks
