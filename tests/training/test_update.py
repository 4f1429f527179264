"""One optimizer a rank, one rate, one norm."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from ppframe.training.update import Update


def parameters(*values: float) -> list[nn.Parameter]:
    return [nn.Parameter(torch.tensor([value])) for value in values]


def sgd(named):
    return torch.optim.SGD(list(named), lr=0.5)


def test_every_rank_is_updated_at_the_scheduled_rate():
    first, second = parameters(1.0, 2.0)
    seen = []

    def halve(step: int, total: int) -> float:
        seen.append((step, total))
        return 0.5**step

    update = Update([[("0", first)], [("1", second)]], make_optimizer=sgd, lr_schedule=halve)
    rates = []
    for step in range(2):
        first.grad, second.grad = torch.tensor([1.0]), torch.tensor([2.0])
        rates.append(update.apply(step, 2)[0])
    assert len(update.optimizers) == 2
    assert seen == [(0, 2), (1, 2)]
    assert rates == [0.5, 0.25]
    assert first.item() == pytest.approx(1.0 - 0.5 - 0.25)
    assert second.item() == pytest.approx(2.0 - 1.0 - 0.5)
    assert first.grad is None
    assert second.grad is None


def test_the_limit_holds_for_the_norm_over_all_ranks():
    first, second = parameters(0.0, 0.0)
    update = Update(
        [[("0", first)], [("1", second)]],
        make_optimizer=sgd,
        lr_schedule=lambda step, total: 1.0,
        clip_grad_norm=1.0,
    )
    first.grad, second.grad = torch.tensor([3.0]), torch.tensor([4.0])
    _, norm = update.apply(0, 1)
    assert norm == pytest.approx(5.0)
    assert first.item() == pytest.approx(-0.5 * 3 / 5, rel=1e-4)
    assert second.item() == pytest.approx(-0.5 * 4 / 5, rel=1e-4)


def test_without_a_limit_the_norm_is_still_told():
    (first,) = parameters(0.0)
    update = Update([[("0", first)]], make_optimizer=sgd, lr_schedule=lambda step, total: 1.0)
    first.grad = torch.tensor([-300.0])
    assert update.apply(0, 1)[1] == pytest.approx(300.0)
    assert first.item() == pytest.approx(150.0)


def test_groups_keep_their_own_rates():
    first, second = parameters(0.0, 0.0)

    def make(named):
        owned = [parameter for _, parameter in named]
        groups = [{"params": owned[:1]}, {"params": owned[1:], "lr": 0.1}]
        return torch.optim.SGD(groups, lr=1.0)

    ranks = [[("0", first), ("1", second)]]
    update = Update(ranks, make_optimizer=make, lr_schedule=lambda step, total: 2.0)
    first.grad, second.grad = torch.tensor([1.0]), torch.tensor([1.0])
    update.apply(0, 1)
    assert (first.item(), second.item()) == pytest.approx((-2.0, -0.2))


def test_frozen_parameters_and_empty_ranks_have_no_optimizer():
    trained, frozen = parameters(1.0, 1.0)
    frozen.requires_grad_(False)
    update = Update(
        [[("0", frozen)], [], [("1", trained)]],
        make_optimizer=sgd,
        lr_schedule=lambda step, total: 1.0,
    )
    assert len(update.optimizers) == 1
    trained.grad = torch.tensor([2.0])
    assert update.apply(0, 1) == pytest.approx((0.5, 2.0))
    assert math.isclose(frozen.item(), 1.0)
