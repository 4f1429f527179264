"""Batches, their arguments and their losses: results are those of the unsplit model."""

import copy

import pytest
import torch
from torch import nn

from ppframe import Pipeline, Replicate, Split, add_auxiliary_loss
from ppframe.schedule import Schedule, build_schedule
from tests.runtime.layouts import LAYOUTS, layouts
from tests.runtime.plain import (
    assert_equal,
    assert_same_gradients,
    gradients_of,
    run_modules,
    small_chain,
)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(3)


def test_last_stage_may_run_microbatches_in_any_order():
    usual = build_schedule("gpipe", ranks=2, microbatches=3)
    first, last = usual.actions
    by_name = {str(action): action for action in last}
    order = ["1F1", "1BW1", "1F0", "1F2", "1BW2", "1BW0"]
    schedule = Schedule(
        actions=(first, tuple(by_name[name] for name in order)), placement=usual.placement
    )
    modules = small_chain(2)
    x, y = torch.randn(7, 3).double(), torch.randn(7, 3).double()
    assert_equal(modules, x, y, nn.MSELoss(), {"schedule": schedule}, microbatch_size=None)
    with Pipeline(modules, loss=nn.MSELoss(), schedule=schedule) as pipe:
        result = pipe.step(x, y)
    for index, (part, target) in enumerate(zip(x.tensor_split(3), y.tensor_split(3), strict=True)):
        alone = nn.MSELoss()(run_modules(modules, part), target)
        torch.testing.assert_close(result.microbatch_losses[index], alone.detach())


class TakesArguments(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, mask=None, table=None, scale=None, nested=None, note=None):
        x = self.layer(x) * mask.unsqueeze(-1) + table[nested["rows"]] * scale
        return x + nested["bias"] + note.offset


class Note:
    offset = 0.5


def test_keyword_arguments_by_rule_and_by_default(caplog):
    modules = [TakesArguments(), nn.Tanh(), TakesArguments(), nn.Linear(3, 3)]
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    arguments = {
        "mask": torch.rand(5),
        "table": torch.randn(7, 3),
        "scale": torch.tensor(0.3),
        "nested": {"rows": torch.randint(0, 7, (5,)), "bias": torch.randn(1, 3)},
        "note": Note(),
    }
    expected = copy.deepcopy(modules)
    value = nn.MSELoss()(run_modules(expected, x, **arguments), y)
    value.backward()
    for layout in LAYOUTS:
        mine = copy.deepcopy(modules)
        rules = {"mask": Split(), "table": Replicate()}
        options = {"loss": nn.MSELoss(), "microbatch_size": 2, "argument_rules": rules, **layout}
        with Pipeline(mine, **options) as pipe:
            result = pipe.step(x, y, **arguments)
        torch.testing.assert_close(result.loss, value.detach())
        assert_same_gradients(gradients_of(mine), gradients_of(expected))
    assert "`nested`" in caplog.text
    assert "`mask`" not in caplog.text


class Router(nn.Module):
    def __init__(self, quadratic=False):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.quadratic = quadratic

    def forward(self, x):
        gates = self.layer(x).softmax(-1)
        load = gates.mean(0)[0]
        add_auxiliary_loss(load**2 if self.quadratic else load)
        return x * gates


@layouts
@pytest.mark.parametrize("quadratic", [False, True])
def test_auxiliary_losses_of_middle_stages_are_added_and_reported(layout, quadratic):
    modules = [nn.Linear(3, 3), Router(quadratic), Router(quadratic), nn.Linear(3, 3)]
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    expected = copy.deepcopy(modules)
    total, auxiliary = 0.0, 0.0
    for part, target in zip(x.split(2), y.split(2), strict=True):
        value, added = part, 0.0
        for module in expected:
            if isinstance(module, Router):
                gates = module.layer(value).softmax(-1)
                load = gates.mean(0)[0]
                added = added + (load**2 if quadratic else load)
                value = value * gates
            else:
                value = module(value)
        weight = len(part) / 5
        loss = nn.MSELoss()(value, target)
        ((loss + added) * weight).backward()
        total += loss.item() * weight
        auxiliary += added.item() * weight
    mine = copy.deepcopy(modules)
    with Pipeline(mine, loss=nn.MSELoss(), microbatch_size=2, **layout) as pipe:
        result = pipe.step(x, y)
    torch.testing.assert_close(result.loss.item(), total)
    torch.testing.assert_close(result.auxiliary_loss.item(), auxiliary)
    assert_same_gradients(gradients_of(mine), gradients_of(expected))


@layouts
def test_ignored_targets_spread_unevenly(layout):
    modules = [nn.Linear(4, 4) for _ in range(4)]
    targets = torch.tensor([-100, -100, -100, -100, 2, 1, 0])
    assert_equal(modules, torch.randn(7, 4), targets, nn.CrossEntropyLoss(), layout)


@layouts
def test_gradients_accumulate_over_steps_without_rescaling(layout):
    modules = small_chain(4)
    batches = [(torch.randn(n, 3).double(), torch.randn(n, 3).double()) for n in (5, 2)]
    expected = copy.deepcopy(modules)
    for x, y in batches:
        nn.MSELoss()(run_modules(expected, x), y).backward()
    with Pipeline(modules, loss=nn.MSELoss(), microbatch_size=2, **layout) as pipe:
        for x, y in batches:
            pipe.step(x, y)
    assert_same_gradients(gradients_of(modules), gradients_of(expected))


@layouts
def test_several_modules_make_one_stage(layout):
    torch.manual_seed(5)
    modules = [nn.Linear(3, 3) for _ in range(9)]
    chunks = 4 // layout["ranks"]
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    for partition in ("even", "parameters", [3, 1, 4, 1]):
        options = {**layout, "chunks_per_rank": chunks, "partition": partition}
        assert_equal(modules, x, y, nn.MSELoss(), options)
