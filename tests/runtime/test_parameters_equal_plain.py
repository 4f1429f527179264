"""Parameters frozen, shared, used twice: gradients are those of plain autograd."""

import copy
from itertools import product

import pytest
import torch
from torch import nn
from torch.nn import functional

from ppframe import Pipeline
from tests.runtime.layouts import LAYOUTS, layouts
from tests.runtime.plain import (
    assert_equal,
    assert_same_gradients,
    gradients_of,
    pipeline_step,
    run_modules,
    small_chain,
)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(3)


@layouts
@pytest.mark.parametrize("frozen", list(product([False, True], repeat=4)))
def test_every_subset_of_frozen_stages(frozen, layout):
    modules = small_chain(4)
    for module, freeze in zip(modules, frozen, strict=True):
        module.requires_grad_(not freeze)
    x, y = torch.randn(5, 3).double(), torch.randn(5, 3).double()
    assert_equal(modules, x, y, nn.MSELoss(), layout)


class WithTable(nn.Module):
    """Returns its output and a parameter that doesn't depend on the input."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.table = nn.Parameter(torch.randn(3))

    def forward(self, x):
        return self.layer(x), self.table


class AddTable(nn.Module):
    def forward(self, x, table):
        return x * table


@layouts
def test_output_that_depends_only_on_parameters(layout):
    modules = [WithTable(), AddTable(), nn.Linear(3, 3), nn.Identity()]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


class Twice(nn.Module):
    """The same block applied twice, and one weight twice on one path."""

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(3, 3), nn.GELU(), nn.LayerNorm(3))
        self.weight = nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        x = self.block(self.block(x)) + x
        return functional.linear(functional.linear(x, self.weight), self.weight)


class ChunkedProjection(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(3, 9)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return q * k.sigmoid() + v


@layouts
def test_parameters_used_twice_and_chunked_projections(layout):
    modules = [Twice(), ChunkedProjection(), Twice(), nn.Linear(3, 3)]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


@layouts
def test_one_module_in_two_stages(layout):
    shared = nn.Linear(3, 3)
    modules = [shared, nn.Tanh(), shared, nn.Linear(3, 3)]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


@layouts
def test_batch_norm_sees_the_microbatches_in_order(layout):
    modules = [nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3), nn.BatchNorm1d(3)]
    x, y = torch.randn(8, 3), torch.randn(8, 3)
    expected = copy.deepcopy(modules)
    total = 0.0
    for part, target in zip(x.split(2), y.split(2), strict=True):
        value = nn.MSELoss()(run_modules(expected, part), target) / 4
        value.backward()
        total += value.item()
    actual = pipeline_step(modules, x, y, nn.MSELoss(), microbatch_size=2, **layout)
    torch.testing.assert_close(actual.loss.item(), total)
    assert_same_gradients(actual.gradients, gradients_of(expected))
    state = nn.Sequential(*expected).state_dict()
    assert int(state["1.num_batches_tracked"]) == 4
    for name, wanted in state.items():
        torch.testing.assert_close(actual.state[name], wanted)


@pytest.mark.parametrize("layout", [*LAYOUTS, {"schedule": "dora-dfs", "ranks": 4}])
def test_embedding_and_head_share_one_parameter_over_fifty_steps(layout):
    class Head(nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.weight = weight

        def forward(self, x):
            return functional.linear(x, self.weight).flatten(0, 1)

    embedding = nn.Embedding(7, 4)
    modules = [embedding, nn.Linear(4, 4), nn.Linear(4, 4), Head(embedding.weight)]
    expected = copy.deepcopy(modules)
    assert expected[3].weight is expected[0].weight
    ids, targets = torch.randint(0, 7, (5, 3)), torch.randint(0, 7, (5, 3))

    def loss(output, target):
        return functional.cross_entropy(output, target.flatten())

    with Pipeline(modules, loss=loss, microbatch_size=2, **layout) as pipe:
        assert len(list(pipe.parameters())) == 5
        assert {"0.weight", "3.weight"} <= pipe.state_dict().keys()
        assert sum(len(rank) for rank in pipe.parameters_by_rank()) == 5
        sgd = torch.optim.SGD(pipe.parameters(), lr=0.1)
        plain_sgd = torch.optim.SGD(nn.Sequential(*expected).parameters(), lr=0.1)
        for _ in range(50):
            pipe.step(ids, targets)
            sgd.step()
            sgd.zero_grad()
            loss(run_modules(expected, ids), targets).backward()
            plain_sgd.step()
            plain_sgd.zero_grad()
    assert modules[3].weight is modules[0].weight
    torch.testing.assert_close(modules[0].weight, expected[0].weight)
