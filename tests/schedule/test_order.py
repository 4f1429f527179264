"""What must come before what, in every schedule of every generator."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ppframe.schedule import Shape
from tests.schedule.drawings import assert_before, compute, happens_before
from tests.strategies import GENERATORS, build, taken_near


@pytest.mark.parametrize("name", GENERATORS)
def test_forwards_go_down_the_stages_and_backwards_up(name: str) -> None:
    schedule = build(name, taken_near(name, Shape(ranks=3, chunks_per_rank=1, microbatches=4)))
    text = schedule.to_text()
    stages = range(schedule.num_stages)
    for microbatch in range(4):
        chain = [f"{stage}F{microbatch}" for stage in stages]
        for stage in reversed(stages):
            whole = f"{stage}BW{microbatch}"
            chain.append(whole if whole in text else f"{stage}B{microbatch}")
        for first, second in pairwise(chain):
            assert_before(schedule, first, second)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_last_rank_does_not_wait_for_other_microbatches_before_its_first_forward(
    name: str,
) -> None:
    schedule = build(name, taken_near(name, Shape(ranks=3, chunks_per_rank=1, microbatches=4)))
    second = next(m for m in range(1, schedule.num_microbatches) if schedule.chain(m) == 0)
    assert not happens_before(schedule, f"0F{second}", "2F0")


def test_nothing_comes_before_itself_or_without_a_chain() -> None:
    schedule = compute("0F0 0BW0 0F1 0BW1", "1F0 1BW0 1F1 1BW1")
    assert happens_before(schedule, "1BW0", "0F1")
    assert not happens_before(schedule, "0F0", "0F0")
    assert not happens_before(schedule, "0BW0", "1BW0")
