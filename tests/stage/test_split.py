"""B then W is the backward of plain autograd: values, hooks, memory, number of forwards."""

from __future__ import annotations

import copy
import weakref
from collections import Counter

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ppframe.stage import Stage
from tests.stage.modules import MODULES, WIDTH, Mapped, linear, parameter

CPU = torch.device("cpu")
ORDERS = ("F0 B0 W0 F1 B1 W1", "F0 F1 B0 B1 W0 W1", "F0 F1 B1 B0 W0 W1", "F0 F1 B0 W0 BW1")

modules = pytest.mark.parametrize("name", MODULES)


def stage_of(module: nn.Module, index: int = 1) -> Stage:
    stage = Stage(index, [(0, module)], device=CPU, seed=0)
    stage.begin_step(0)
    return stage


def made(name: str) -> nn.Module:
    torch.manual_seed(0)
    return MODULES[name][0]()


def numbers(seed: int) -> list[Tensor]:
    """An input, or a gradient of the output, for each of two microbatches."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(4, WIDTH, generator=generator) for _ in range(2)]


def in_order(stage: Stage, order: str) -> list[Tensor | None]:
    """Gradients of the two inputs after these actions."""
    inputs, seeds = numbers(1), numbers(2)
    arrived: dict[int, Tensor | None] = {}
    for action in order.split():
        kind, microbatch = action[:-1], int(action[-1])
        seed = (seeds[microbatch],)
        if kind == "F":
            x = inputs[microbatch].clone().requires_grad_(stage.index > 0)
            stage.forward(microbatch, x, {})
        elif kind == "W":
            stage.backward_weight(microbatch)
        else:
            backward = stage.backward_input if kind == "B" else stage.backward
            arrived[microbatch] = (backward(microbatch, seed) or (None,))[0]
    assert stage.num_kept == 0
    return [arrived[0], arrived[1]]


def by_autograd(module: nn.Module) -> list[Tensor | None]:
    arrived = []
    for x, seed in zip(numbers(1), numbers(2), strict=True):
        leaf = x.requires_grad_()
        out = module(leaf.clone())
        if out.requires_grad:
            out.backward(seed)
        arrived.append(leaf.grad)
    return arrived


@modules
@pytest.mark.parametrize("order", ORDERS)
def test_b_and_w_give_the_gradients_of_autograd(name, order):
    module = made(name)
    twin = copy.deepcopy(module)
    expected = by_autograd(twin)
    for got, wanted in zip(in_order(stage_of(module), order), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-6)
    for (key, own), other in zip(module.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(
            own.grad, other.grad, rtol=0, atol=1e-6, msg=lambda m, k=key: k + m
        )
    for own, other in zip(module.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(own, other, rtol=0, atol=1e-6)


@modules
def test_it_gives_the_same_bits_as_the_whole_backward(name):
    module = made(name)
    twin = copy.deepcopy(module)
    in_order(stage_of(module), "F0 B0 W0 F1 B1 W1")
    in_order(stage_of(twin), "F0 BW0 F1 BW1")
    for own, other in zip(module.parameters(), twin.parameters(), strict=True):
        assert (own.grad is None) == (other.grad is None)
        if own.grad is not None and name != "convolutions":  # their offsets are summed elsewhere
            assert torch.equal(own.grad, other.grad)


@modules
def test_what_waits_is_what_can_wait(name):
    stage = stage_of(made(name))
    assert stage.num_waiting_weights is None
    in_order(stage, "F0 F1 B0 B1 W0 W1")
    assert stage.num_waiting_weights == MODULES[name][1]


@pytest.mark.parametrize("name", [name for name in MODULES if "reentry" not in name])
def test_stage_zero_whose_input_wants_no_gradient(name):
    module = made(name)
    twin = copy.deepcopy(module)
    in_order(stage_of(module, index=0), "F0 F1 B0 B1 W0 W1")
    by_autograd(twin)
    for own, other in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(own.grad, other.grad, rtol=0, atol=1e-6)


@modules
def test_hooks_of_parameters_are_called_as_in_the_whole_backward(name):
    calls: Counter[tuple[str, str]] = Counter()
    sums: dict[str, Tensor] = {}

    def watched(module: nn.Module, run: str) -> nn.Module:
        for key, weight in module.named_parameters():
            if not weight.requires_grad:
                continue

            def seen(gradient: Tensor, key: str = key) -> None:
                calls[run, key] += 1
                sums[f"{run} {key} {calls[run, key]}"] = gradient.clone()

            def after(_: Tensor, key: str = key) -> None:
                calls[run + " after", key] += 1

            weight.register_hook(seen)
            weight.register_post_accumulate_grad_hook(after)
        return module

    in_order(stage_of(watched(made(name), "split")), "F0 B0 W0 F1 B1 W1")
    in_order(stage_of(watched(made(name), "whole")), "F0 BW0 F1 BW1")
    for (run, key), count in calls.items():
        assert calls[run.replace("whole", "split"), key] == count
    assert {k for r, k in calls if r == "split"} == {k for r, k in calls if r == "whole"}
    for key, value in sums.items():
        torch.testing.assert_close(value, sums[key.replace("whole", "split")], rtol=0, atol=1e-6)


def test_a_hook_that_changes_the_gradient_is_heard():
    module = linear()
    module.weight.register_hook(lambda gradient: gradient * 0)
    in_order(stage_of(module), "F0 B0 W0 F1 B1 W1")
    assert module.weight.grad.abs().max() == 0
    assert module.bias.grad.abs().max() > 0


def test_existing_gradients_grow():
    module = linear()
    module.weight.grad = torch.full((WIDTH, WIDTH), 100.0)
    twin = copy.deepcopy(module)
    by_autograd(twin)
    in_order(stage_of(module), "F0 B0 W0 F1 B1 W1")
    torch.testing.assert_close(module.weight.grad, twin.weight.grad + 100.0)


def test_w_keeps_operands_and_b_frees_the_rest():
    kept: dict[str, weakref.ref[torch.UntypedStorage]] = {}

    def noted(name: str, x: Tensor) -> Tensor:
        kept[name] = weakref.ref(x.untyped_storage())
        return x

    def run(m: nn.Module, x: Tensor) -> Tensor:
        hidden = noted("input of gelu", m.one(x))
        return m.two(noted("operand of two", nn.functional.gelu(hidden)))

    stage = stage_of(Mapped(run, one=linear(), two=linear()))
    stage.forward(0, torch.randn(4, WIDTH, requires_grad=True), {})
    assert kept["input of gelu"]() is not None
    stage.backward_input(0, (torch.ones(4, WIDTH),))
    assert kept["input of gelu"]() is None
    assert kept["operand of two"]() is not None
    stage.backward_weight(0)
    assert kept["operand of two"]() is None


@pytest.mark.parametrize("by_reentry", [False, True])
def test_a_checkpointed_module_runs_forward_twice(by_reentry):
    forwards = 0

    def inner(x: Tensor) -> Tensor:
        nonlocal forwards
        forwards += 1
        return torch.tanh(part(x))

    part = linear()
    module = Mapped(lambda m, x: checkpoint(inner, x, use_reentrant=by_reentry), part=part)
    stage = stage_of(module)
    stage.forward(0, torch.randn(4, WIDTH, requires_grad=True), {})
    stage.backward_input(0, (torch.ones(4, WIDTH),))
    stage.backward_weight(0)
    assert forwards == 2


def test_an_operand_that_is_overwritten_before_w_is_an_error_and_no_wrong_gradient():
    memory = torch.zeros(4, WIDTH)

    def remember(m: nn.Module, x: Tensor) -> Tensor:
        memory.copy_(x.detach())
        return m.inner(x) + memory @ m.matrix

    module = Mapped(remember, inner=linear(), matrix=parameter(WIDTH, WIDTH))
    in_order(stage_of(module), "F0 B0 W0 F1 B1 W1")
    with pytest.raises(RuntimeError, match="written to in place after B"):
        in_order(stage_of(module), "F0 B0 F1 W0 B1 W1")


def test_an_output_that_is_a_parameter_gets_its_gradient():
    table = nn.Parameter(torch.randn(WIDTH))
    module = Mapped(lambda m, x: (m.inner(x), m.table), inner=linear(), table=table)
    stage = stage_of(module)
    stage.forward(0, torch.randn(4, WIDTH, requires_grad=True), {})
    stage.backward_input(0, (None, torch.arange(8.0)))
    stage.backward_weight(0)
    assert torch.equal(table.grad, torch.arange(8.0))
    assert module.inner.weight.grad is None


def test_an_output_given_twice_counts_twice():
    module = Mapped(lambda m, x: (m.inner(x),) * 2, inner=linear())
    stage = stage_of(module)
    stage.forward(0, torch.randn(4, WIDTH, requires_grad=True), {})
    stage.backward_input(0, (torch.ones(4, WIDTH), torch.ones(4, WIDTH)))
    stage.backward_weight(0)
    assert torch.equal(module.inner.bias.grad, torch.full((WIDTH,), 8.0))


def test_an_output_without_gradient_leaves_nothing_to_do():
    stage = stage_of(linear())
    stage.forward(0, torch.randn(4, WIDTH, requires_grad=True), {})
    assert stage.backward_input(0, (None,)) == (None,)
    stage.backward_weight(0)
    assert stage.num_kept == 0


def test_release_drops_what_waits():
    stage = stage_of(linear())
    stage.forward(0, torch.randn(4, WIDTH, requires_grad=True), {})
    stage.backward_input(0, (torch.ones(4, WIDTH),))
    assert stage.num_kept == 1
    stage.release()
    assert stage.num_kept == 0
