from __future__ import annotations

import pytest

from ppframe.schedule import build_schedule
from ppframe.simulator import Cost, simulate
from tests.schedule.drawings import assert_same_grid


def test_drawing() -> None:
    drawing = """
    0F0  .    .    .
    0F1  1F0  .    .
    0F2  1F1  2F0  .
    0F3  1F2  2F1  3F0
    0F4  1F3  2F2  3B0
    0F5  1F4  2B0  3F1
    0F6  1B0  2F3  3B1
    0B0  1F5  2B1  3F2
    0F7  1B1  2F4  3B2
    0W0  1F6  2B2  3F3
    0B1  1B2  2F5  3B3
    0W1  1F7  2B3  3F4
    0B2  1B3  2F6  3B4
    0W2  1W0  2B4  3F5
    0B3  1B4  2F7  3B5
    0W3  1W1  2B5  3F6
    0B4  1B5  2W0  3B6
    0W4  1W2  2B6  3F7
    0B5  1B6  2W1  3B7
    0W5  1W3  2B7  3W0
    0B6  1B7  2W2  3W1
    0W6  1W4  2W3  3W2
    0B7  1W5  2W4  3W3
    0W7  1W6  2W5  3W4
    .    1W7  2W6  3W5
    .    .    2W7  3W6
    .    .    .    3W7
    """
    assert_same_grid(build_schedule("zb-2p", ranks=4, microbatches=8), drawing)


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_no_rank_waits_between_its_ends_from_2p_less_1_microbatches_on(ranks: int) -> None:
    unit = Cost(1, 1, 1)
    for microbatches in (2 * ranks - 1, 2 * ranks, 3 * ranks):
        assert simulate(build_schedule("zb-2p", ranks, microbatches), unit).span_bubble == 0


def test_a_limit_of_p_gives_zb_1p() -> None:
    cost = Cost(1.9, 1.8, 0.9, transfer=0.1, weight_share=0.4)
    once = build_schedule("zb-1p", 4, 12, cost=cost)
    assert build_schedule("zb-2p", 4, 12, cost=cost, memory_limit=4).actions == once.actions


def test_more_memory_leaves_less_bubble() -> None:
    cost = Cost(18.5, 18.1, 9.3, transfer=0.6, weight_share=0.37)
    spans = [
        simulate(build_schedule("zb-2p", 4, 16, cost=cost, memory_limit=limit), cost).span_bubble
        for limit in (2, 3, 4, 5, 6, 8)
    ]
    assert spans == sorted(spans, reverse=True)
    assert spans[-1] < spans[0] / 4
