from __future__ import annotations

import torch
from torch import nn

from ppframe.schedule import build_schedule
from ppframe.training.waiting import Waiting, splits, waiting_of


def meta(*modules: nn.Module) -> list[nn.Module]:
    return [module.to("meta") for module in modules]


def test_products_wait_and_the_rest_does_not():
    modules = meta(
        nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)),  # 2 of 4
        nn.ReLU(inplace=True),
        nn.Linear(4, 4),  # 2 of 2, with the ReLU one stage
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)),  # none of 3
    )
    found = waiting_of(modules[:3], [1, 2], torch.randn(2, 4))
    assert found == (Waiting(2, 4), Waiting(2, 2))
    (normed,) = waiting_of(modules[3:], [1], torch.randn(2, 4))
    assert normed == Waiting(0, 3)


def test_what_arrives_from_another_stage_is_no_parameter():
    class Square(nn.Module):
        def forward(self, x):
            return x @ x.t()

    found = waiting_of(meta(nn.Linear(4, 4), Square()), [1, 1], torch.randn(2, 4))
    assert found == (Waiting(2, 2), Waiting(0, 0))


def test_a_module_that_needs_numbers_can_not_be_told():
    class Chooses(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    assert waiting_of(meta(Chooses()), [1], torch.randn(2, 4)) is None


def test_which_schedules_split():
    assert splits(build_schedule("zbv", 2, 4))
    assert splits(build_schedule("dualpipe-v", 2, 4))
    assert not splits(build_schedule("1f1b", 2, 4))
