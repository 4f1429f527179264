"""A model after somebody ran it is the model before."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from ppframe.training.untouched import untouched

CPU = (torch.device("cpu"),)


def test_buffers_gradients_and_randomness_are_put_back() -> None:
    norm = nn.BatchNorm1d(4)
    model = nn.Sequential(nn.Linear(3, 4), norm, nn.Dropout())
    model(torch.ones(2, 3)).sum().backward()
    gradients = [p.grad for p in model.parameters()]
    values = [g.clone() for g in gradients if g is not None]
    before, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    with untouched([model], CPU):
        assert all(p.grad is None for p in model.parameters())
        model(torch.randn(2, 3)).sum().backward()
        assert norm.num_batches_tracked is not None
        assert norm.num_batches_tracked == 2
    after = model.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)
    for parameter, gradient, value in zip(model.parameters(), gradients, values, strict=True):
        assert gradient is not None
        assert parameter.grad is gradient
        assert torch.equal(gradient, value)
    assert torch.equal(torch.get_rng_state(), random)


def test_a_buffer_that_was_exchanged_is_the_old_one_again() -> None:
    module = nn.Module()
    module.register_buffer("seen", torch.zeros(2))
    old = module.seen
    with untouched([module], CPU):
        module.seen = torch.ones(2)
    assert module.seen is old
    assert module.seen.tolist() == [0.0, 0.0]


def fail_after_a_pass(norm: nn.BatchNorm1d) -> None:
    with untouched([norm], CPU):
        norm(torch.ones(3, 2))
        raise KeyError


def test_an_error_changes_nothing_of_that() -> None:
    norm = nn.BatchNorm1d(2)
    with pytest.raises(KeyError):
        fail_after_a_pass(norm)
    assert norm.num_batches_tracked == 0
