"""What a stage is given and hands on is nobody else's: no later forward's, no caller's."""

import copy
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from ppframe import Pipeline
from tests.runtime.layouts import layouts
from tests.runtime.plain import assert_equal, assert_same_gradients, gradients_of, run_modules


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(3)


class GivesItsCounter(nn.Module):
    """Returns a buffer that its next forward writes to."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return self.layer(x), self.count


class AddsIt(nn.Module):
    def forward(self, x, count):
        return x + count


@layouts
def test_a_buffer_that_is_handed_on_is_what_it_was_then(layout):
    modules = [nn.Linear(3, 3), GivesItsCounter(), AddsIt(), nn.Linear(3, 3)]
    x, y = torch.randn(8, 3), torch.randn(8, 3)
    expected = copy.deepcopy(modules)
    total = sum(
        nn.MSELoss()(run_modules(expected, a), b) / 4
        for a, b in zip(x.split(2), y.split(2), strict=True)
    )
    total.backward()
    with Pipeline(modules, loss=nn.MSELoss(), microbatch_size=2, **layout) as pipe:
        result = pipe.step(x, y)
    torch.testing.assert_close(result.loss, total.detach())
    assert_same_gradients(gradients_of(modules), gradients_of(expected))


@dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor | None
    label: str = "pair"


class MakesPair(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return Pair(self.layer(x), None, "made")


class TakesPair(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaves = []

    def forward(self, pair):
        assert (pair.second, pair.label) == (None, "made")
        self.leaves.append(pair.first.grad_fn is None or "Clone" in pair.first.grad_fn.name())
        return pair.first.tanh()


@layouts
def test_a_dataclass_is_cut_like_any_structure(layout):
    modules = [nn.Linear(3, 3), MakesPair(), TakesPair(), nn.Linear(3, 3)]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)
    with Pipeline(modules, loss=nn.MSELoss(), schedule="1f1b", ranks=4, microbatch_size=2) as pipe:
        pipe.step(torch.randn(5, 3), torch.randn(5, 3))
    assert all(modules[2].leaves)


@layouts
def test_the_callers_batch_is_never_written_to(layout):
    modules = [nn.ReLU(inplace=True), nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)]
    x, y = torch.randn(8, 3), torch.randn(8, 3)
    kept = x.clone()
    with Pipeline(modules, loss=nn.MSELoss(), microbatch_size=2, **layout) as pipe:
        pipe.step(x, y)
        pipe.step(x, y)
        pipe.evaluate(x, y)
        pipe.forward(x)
    assert torch.equal(x, kept)


@layouts
def test_a_batch_computed_from_parameters_passes_gradients_on(layout):
    scale, shift = (torch.randn(3, requires_grad=True) for _ in range(2))
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    modules = [nn.Linear(3, 3) for _ in range(4)]
    expected = copy.deepcopy(modules)
    nn.MSELoss()(run_modules(expected, x * scale), y + shift).backward()
    wanted = scale.grad.clone(), shift.grad.clone()
    scale.grad = shift.grad = None
    with Pipeline(modules, loss=nn.MSELoss(), microbatch_size=2, **layout) as pipe:
        pipe.step(x * scale, y + shift)
    torch.testing.assert_close((scale.grad, shift.grad), wanted)
    assert_same_gradients(gradients_of(modules), gradients_of(expected))
