"""A recomputed stage: the gradients of a kept one, two forwards, nothing held in between."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from ppframe.errors import ConfigError
from ppframe.stage import Stage
from tests.stage.modules import MODULES, WIDTH, Mapped, linear

CPU = torch.device("cpu")


def run(module: nn.Module, order: str, *, recompute: bool) -> list[Tensor | None]:
    """Gradients that arrive at the input of a middle stage, for two microbatches."""
    stage = Stage(1, [(0, module)], device=CPU, seed=3, recompute=recompute)
    stage.begin_step(5, (0.5, 0.5))
    generator = torch.Generator().manual_seed(1)
    inputs, seeds = torch.randn(2, 2, 4, WIDTH, generator=generator)
    arrived: dict[int, Sequence[Tensor | None]] = {}
    for action in order.split():
        kind, microbatch = action[:-1], int(action[-1])
        if kind == "F":
            stage.forward(microbatch, inputs[microbatch].clone().requires_grad_(), {})
        elif kind == "W":
            stage.backward_weight(microbatch)
        else:
            backward = stage.backward_input if kind == "B" else stage.backward
            arrived[microbatch] = backward(microbatch, (seeds[microbatch],))
    assert stage.num_kept == 0
    return [arrived[0][0], arrived[1][0]]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("order", ["F0 F1 BW0 BW1", "F0 F1 B0 B1 W0 W1"])
def test_gradients_and_buffers_are_those_of_a_kept_stage(name, order):
    torch.manual_seed(0)
    module = MODULES[name][0]()
    twin = copy.deepcopy(module)
    got, wanted = run(module, order, recompute=True), run(twin, order, recompute=False)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-6)
    for own, other in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(own.grad, other.grad, rtol=0, atol=1e-6)
    for own, other in zip(module.buffers(), twin.buffers(), strict=True):
        assert torch.equal(own, other)


def test_dropout_is_the_same_in_both_forwards():
    masks: list[Tensor] = []

    def drop(m: nn.Module, x: Tensor) -> Tensor:
        masks.append(torch.dropout(torch.ones_like(x), 0.5, train=True))
        return m.inner(x) * masks[-1]

    run(Mapped(drop, inner=linear()), "F0 F1 BW0 BW1", recompute=True)
    assert torch.equal(masks[0], masks[2])
    assert torch.equal(masks[1], masks[3])
    assert not torch.equal(masks[0], masks[1])


def test_a_microbatch_runs_forward_twice():
    forwards = 0

    def count(m: nn.Module, x: Tensor) -> Tensor:
        nonlocal forwards
        forwards += 1
        return m.inner(x)

    run(Mapped(count, inner=linear()), "F0 F1 B0 W0 B1 W1", recompute=True)
    assert forwards == 4


def test_statistics_count_each_microbatch_once_also_where_a_buffer_is_replaced():
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))
            self.inner = linear()

        def forward(self, x: Tensor) -> Tensor:
            self.seen = self.seen + 1
            return self.inner(x)

    module = nn.Sequential(Counts(), nn.BatchNorm1d(WIDTH))
    run(module, "F0 F1 BW0 BW1", recompute=True)
    assert module[0].seen == 2
    assert module[1].num_batches_tracked == 2


class Remembers(nn.Module):
    """Whose output depends on what it remembers of earlier microbatches."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.inner, self.how = linear(), how
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x)
        if self.how == "in place":
            self.mean.mul_(0.9).add_(y.detach().mean(0))
            self.count += 1
        else:
            self.mean = 0.9 * self.mean + y.detach().mean(0)
            self.count = self.count + 1
        return (y - self.mean) * float(self.count)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Remembers("in place"),
        lambda: Remembers("replaced"),
        lambda: nn.utils.spectral_norm(linear()),
        lambda: nn.utils.parametrizations.spectral_norm(linear()),
        lambda: nn.Sequential(nn.BatchNorm1d(WIDTH), Remembers("in place")),
    ],
)
@pytest.mark.parametrize("order", ["F0 F1 BW0 BW1", "F0 F1 B1 B0 W0 W1"])
def test_a_second_forward_starts_from_the_state_that_the_first_one_found(make, order):
    torch.manual_seed(0)
    module = make()
    twin = copy.deepcopy(module)
    got, wanted = run(module, order, recompute=True), run(twin, order, recompute=False)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-6)
    for own, other in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(own.grad, other.grad, rtol=0, atol=1e-6)
    for own, other in zip(module.buffers(), twin.buffers(), strict=True):
        assert torch.equal(own, other)


def test_a_buffer_that_is_first_written_to_late_is_refused():
    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.calls = linear(), 0
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            if self.calls == 2:
                self.seen += 1
            return self.inner(x)

    with pytest.raises(ConfigError, match="buffer `seen` of Late"):
        run(Late(), "F0 F1 BW0 BW1", recompute=True)


def test_autograd_inside_a_forward_works():
    def penalised(m: nn.Module, x: Tensor) -> Tensor:
        y = m.inner(x)
        (slope,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
        return y + slope

    torch.manual_seed(0)
    module = Mapped(penalised, inner=linear())
    twin = copy.deepcopy(module)
    got = run(module, "F0 F1 BW0 BW1", recompute=True)
    wanted = run(twin, "F0 F1 BW0 BW1", recompute=False)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-6)
    torch.testing.assert_close(module.inner.weight.grad, twin.inner.weight.grad)


def test_activations_are_gone_between_forward_and_backward():
    hidden: list[weakref.ref[torch.UntypedStorage]] = []

    def note(m: nn.Module, x: Tensor) -> Tensor:
        y = m.one(x)
        hidden.append(weakref.ref(y.untyped_storage()))
        return m.two(torch.tanh(y))

    stage = Stage(
        1, [(0, Mapped(note, one=linear(), two=linear()))], device=CPU, seed=0, recompute=True
    )
    stage.begin_step(0)
    output, _ = stage.forward(0, torch.randn(4, WIDTH, requires_grad=True), {})
    assert hidden[0]() is None
    assert output.requires_grad
    assert output.grad_fn is None
    stage.backward(0, (torch.ones(4, WIDTH),))
    assert hidden[1]() is None


def test_an_integer_output_asks_for_no_gradient():
    stage = Stage(
        1, [(0, Mapped(lambda m, x: (m.inner(x), x.argmax(-1)), inner=linear()))],
        device=CPU, seed=0, recompute=True,
    )  # fmt: skip
    stage.begin_step(0)
    (values, indices), _ = stage.forward(0, torch.randn(4, WIDTH, requires_grad=True), {})
    assert values.requires_grad
    assert not indices.requires_grad
