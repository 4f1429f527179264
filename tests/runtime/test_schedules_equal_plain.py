"""Every schedule gives the plain model's loss and gradients, wherever it takes P, V and M."""

import pytest
import torch
from torch import nn

from ppframe.schedule import Shape, build_schedule, nearest_microbatches, schedule_facts
from tests.runtime.plain import assert_same_answer, pipeline_step, plain_step, small_chain
from tests.strategies import GENERATORS, taken_near

CASES = sorted(
    {
        (name, *taken_near(name, Shape(ranks, chunks, 4))[:2])
        for name in GENERATORS
        for ranks in range(1, 5)
        for chunks in range(1, 4)
    }
)


@pytest.mark.parametrize(("name", "ranks", "chunks"), CASES)
def test_uneven_batches_of_one_to_twelve_microbatches(name, ranks, chunks):
    facts = schedule_facts(name)
    modules = small_chain(ranks * chunks)
    generator = torch.Generator().manual_seed(1)
    taken = [m for m in range(1, 13) if facts.takes_microbatches(Shape(ranks, chunks, m))]
    assert taken
    for num_microbatches in taken:
        size = 2 * num_microbatches - 1
        x = torch.randn(size, 3, generator=generator, dtype=torch.float64)
        y = torch.randn(size, 3, generator=generator, dtype=torch.float64)
        actual = pipeline_step(
            modules,
            x,
            y,
            nn.MSELoss(),
            schedule=name,
            ranks=ranks,
            chunks_per_rank=chunks,
            microbatch_size=2,
        )
        assert_same_answer(actual, plain_step(modules, x, y, nn.MSELoss()))


@pytest.mark.parametrize("name", GENERATORS)
def test_a_given_schedule_is_the_one_that_runs(name):
    schedule = build_schedule(name, ranks=2, microbatches=nearest_microbatches(name, 2, 3))
    modules = small_chain(schedule.num_stages)
    size = 2 * schedule.num_microbatches + 1
    x, y = torch.randn(size, 3).double(), torch.randn(size, 3).double()
    actual = pipeline_step(modules, x, y, nn.MSELoss(), schedule=schedule)
    assert_same_answer(actual, plain_step(modules, x, y, nn.MSELoss()))
