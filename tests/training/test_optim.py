from __future__ import annotations

import io
from typing import Any, cast

import pytest
import torch
from torch import nn

from ppframe.errors import ConfigError
from ppframe.registry import builder
from ppframe.training.optim import adamw, decay_groups, optimizer_from_class, sgd


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 2))


def after_steps(optimizer_of, steps: int = 3) -> list[torch.Tensor]:
    """Parameters after some steps with an optimizer made from the model."""
    trained = model()
    optimizer = optimizer_of(trained)
    inputs = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    for _ in range(steps):
        optimizer.zero_grad()
        trained(inputs).square().sum().backward()
        optimizer.step()
    return [p.detach() for p in trained.parameters()]


def assert_trains_like(factory, plain) -> None:
    ours = after_steps(lambda trained: factory(trained.named_parameters()))
    theirs = after_steps(lambda trained: plain(trained.parameters()))
    torch.testing.assert_close(ours, theirs)


def test_optimizers_are_registered():
    assert builder("optimizer", "sgd") is sgd
    assert builder("optimizer", "adamw") is adamw


def test_sgd_by_hand():
    weight = nn.Parameter(torch.tensor([[2.0]]))
    optimizer = sgd(lr=0.1, momentum=0.5, weight_decay=0.01)([("weight", weight)])
    values = []
    for _ in range(2):
        weight.grad = torch.tensor([[1.0]])
        optimizer.step()
        values.append(weight.item())
    first = 2.0 - 0.1 * (1.0 + 0.01 * 2.0)
    second = first - 0.1 * (0.5 * (1.0 + 0.01 * 2.0) + 1.0 + 0.01 * first)
    assert values == pytest.approx([first, second])


def test_adamw_by_hand():
    weight, bias = nn.Parameter(torch.tensor([[2.0]])), nn.Parameter(torch.tensor([2.0]))
    optimizer = adamw(lr=0.1, weight_decay=0.5)([("weight", weight), ("bias", bias)])
    weight.grad, bias.grad = torch.tensor([[3.0]]), torch.tensor([3.0])
    optimizer.step()
    assert weight.item() == pytest.approx(2.0 * (1 - 0.1 * 0.5) - 0.1)  # first step: sign of grad
    assert bias.item() == pytest.approx(2.0 - 0.1)


@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.05},
        {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    ],
)
def test_sgd_trains_like_torch(options):
    assert_trains_like(sgd(**options), lambda params: torch.optim.SGD(params, **options))


def test_adamw_that_decays_everything_trains_like_torch():
    options: dict[str, Any] = {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.3}
    factory = adamw(**options, decay_biases_and_norms=True)
    assert_trains_like(factory, lambda params: torch.optim.AdamW(params, **options))


def test_biases_and_norms_are_spared_the_decay():
    decayed, spared = adamw(lr=0.1, weight_decay=0.3)(model().named_parameters()).param_groups
    assert decayed["param_names"] == ["0.weight", "2.weight"]
    assert spared["param_names"] == ["0.bias", "1.weight", "1.bias", "2.bias"]
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.3, 0.0)


def test_one_group_holds_everything_when_nothing_is_spared():
    groups = decay_groups(model().named_parameters(), 0.3, everything=True)
    assert [len(group["params"]) for group in groups] == [6]


@pytest.mark.parametrize("shapes", [((2, 2),), ((2,),), ()])
def test_a_rank_may_own_parameters_of_one_kind_or_none(shapes):
    named = [(str(i), nn.Parameter(torch.ones(shape))) for i, shape in enumerate(shapes)]
    optimizer = adamw(lr=0.1, weight_decay=0.3)(named)
    assert [len(group["params"]) for group in optimizer.param_groups] == [len(named)]


@pytest.mark.parametrize(
    "factory",
    [adamw(lr=0.1), sgd(lr=0.1), optimizer_from_class(torch.optim.RMSprop, {"lr": 0.1})],
)
def test_a_rank_without_parameters_gets_an_optimizer_that_does_nothing(factory):
    optimizer = factory([])
    optimizer.zero_grad()
    optimizer.step()
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_a_factory_makes_a_new_optimizer_for_each_rank():
    named = list(model().named_parameters())
    factory = adamw(lr=0.1)
    first, second = factory(named[:2]), factory(iter(named[2:]))
    assert sum(len(group["params"]) for group in first.param_groups) == 2
    assert sum(len(group["params"]) for group in second.param_groups) == 4


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5}),
        (torch.optim.Adam, {"lr": 0.01, "betas": [0.8, 0.9]}),
        (torch.optim.Adagrad, {"lr": 0.1}),
    ],
)
def test_any_torch_optimizer_trains_as_it_does_alone(cls, options):
    tuples = {name: tuple(v) if isinstance(v, list) else v for name, v in options.items()}
    factory = optimizer_from_class(cls, options)
    assert_trains_like(factory, lambda params: cls(params, **tuples))


def test_options_of_an_optimizer_hold_tuples_and_dicts_alone():
    class Keeping(torch.optim.SGD):
        def __init__(self, params, lr, deep):
            super().__init__(params, lr=lr)
            self.defaults["deep"] = deep

    optimizer = optimizer_from_class(Keeping, {"lr": 0.1, "deep": {"a": [1, [2, 3]]}})([])
    assert optimizer.defaults["deep"] == {"a": (1, (2, 3))}


def test_the_state_loads_with_weights_only():
    factory = optimizer_from_class(torch.optim.Adam, {"lr": 0.01, "betas": [0.8, 0.9]})
    file = io.BytesIO()
    torch.save(factory(model().named_parameters()).state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    assert state["param_groups"][0]["betas"] == (0.8, 0.9)
    assert state["param_groups"][0]["param_names"][0] == "0.weight"


@pytest.mark.parametrize(
    ("build", "path"),
    [
        (lambda: sgd(lr=-1.0), "optimizer.lr"),
        (lambda: sgd(lr=0.1, momentum=1.0), "optimizer.momentum"),
        (lambda: sgd(lr=0.1, nesterov=True), "optimizer.momentum"),
        (lambda: adamw(lr=0.1, betas=(0.9, 1.0)), "optimizer.betas"),
        (lambda: adamw(lr=0.1, eps=-1e-8), "optimizer.eps"),
        (lambda: adamw(lr=0.1, weight_decay=float("nan")), "optimizer.weight_decay"),
        (lambda: sgd(lr=float("inf")), "optimizer.lr"),
        (lambda: optimizer_from_class(torch.optim.SGD, {"lr": float("inf")}), "optimizer.lr"),
        (lambda: optimizer_from_class(torch.optim.SGD, {"momentum": -1.0}), "optimizer"),
        (lambda: optimizer_from_class(torch.optim.LBFGS, {}), "optimizer._target_"),
        (lambda: optimizer_from_class(torch.optim.SparseAdam, {}), "optimizer._target_"),
        (lambda: optimizer_from_class(torch.optim.SGD, {"lr": 0.1, "foo": 1}), "optimizer"),
        (lambda: optimizer_from_class(cast(Any, nn.Linear), {}), "optimizer._target_"),
        (lambda: optimizer_from_class(cast(Any, sgd), {}), "optimizer._target_"),
    ],
)
def test_options_out_of_range_are_refused(build, path):
    with pytest.raises(ConfigError) as caught:
        build()
    assert caught.value.path == path


def test_all_options_out_of_range_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        adamw(lr=-1.0, weight_decay=-1.0, betas=(2.0, 3.0))
    names = ["lr", "weight_decay", "betas", "betas"]
    assert [fault.path for fault in caught.value.faults] == [f"optimizer.{name}" for name in names]


def test_options_for_another_device_are_left_to_it():
    optimizer_from_class(torch.optim.Adam, {"lr": 0.1, "capturable": True})


@pytest.mark.parametrize(
    "name", ["Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam"]
)
def test_optimizers_of_torch_pass_the_trial(name):
    optimizer_from_class(getattr(torch.optim, name), {})
