"""Every schedule gives the plain model's loss and gradients, wherever it takes P, V and M."""

import pytest
import torch
from torch import nn

from ppframe.schedule import build_schedule, nearest_microbatches
from tests.runtime.plain import assert_same_answer, pipeline_step, plain_step, small_chain

ONE_CHUNK = ("gpipe", "1f1b")
MANY_CHUNKS = ("interleaved-1f1b", "looped-bfs", "dora-dfs", "dora")

CASES = [
    *((name, ranks, 1) for name in ONE_CHUNK for ranks in range(1, 5)),
    *((name, ranks, v) for name in MANY_CHUNKS for ranks in range(1, 5) for v in range(1, 4)),
]


@pytest.mark.parametrize(("name", "ranks", "chunks"), CASES)
def test_uneven_batches_of_one_to_twelve_microbatches(name, ranks, chunks):
    modules = small_chain(ranks * chunks)
    generator = torch.Generator().manual_seed(1)
    for num_microbatches in range(1, 13):
        size = 2 * num_microbatches - 1
        x = torch.randn(size, 3, generator=generator, dtype=torch.float64)
        y = torch.randn(size, 3, generator=generator, dtype=torch.float64)
        assert nearest_microbatches(name, ranks, num_microbatches, chunks) == num_microbatches
        actual = pipeline_step(
            modules, x, y, nn.MSELoss(), schedule=name, ranks=ranks, microbatch_size=2
        )
        assert_same_answer(actual, plain_step(modules, x, y, nn.MSELoss()))


@pytest.mark.parametrize("name", [*ONE_CHUNK, *MANY_CHUNKS])
def test_a_given_schedule_is_the_one_that_runs(name):
    schedule = build_schedule(name, ranks=2, microbatches=3)
    modules = small_chain(schedule.num_stages)
    x, y = torch.randn(7, 3).double(), torch.randn(7, 3).double()
    actual = pipeline_step(modules, x, y, nn.MSELoss(), schedule=schedule)
    assert_same_answer(actual, plain_step(modules, x, y, nn.MSELoss()))
