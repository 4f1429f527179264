from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from ppframe.errors import ConfigError
from ppframe.models.mlp import Linear


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        (None, lambda x: x),
        ("relu", lambda x: x.clamp(min=0)),
        ("gelu", lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5))),
        ("silu", lambda x: x / (1 + torch.exp(-x))),
        ("tanh", lambda x: 1 - 2 / (torch.exp(2 * x) + 1)),
    ],
)
def test_linear_is_an_affine_map_and_then_the_activation(activation, function):
    torch.manual_seed(0)
    chunk = Linear(in_features=3, out_features=5, activation=activation)
    x = torch.randn(4, 3)
    affine = x @ chunk.linear.weight.T + chunk.linear.bias
    torch.testing.assert_close(chunk(x), function(affine))


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        (None, lambda x: x),
        ("relu", functional.relu),
        ("gelu", functional.gelu),
        ("silu", functional.silu),
        ("tanh", torch.tanh),
    ],
)
def test_a_layer_after_a_like_one_starts_by_keeping_the_scale(activation, function):
    torch.manual_seed(0)
    chunk = Linear(in_features=512, out_features=512, activation=activation)
    affine = chunk.linear(function(torch.randn(256, 512)))
    assert affine.square().mean().sqrt().item() == pytest.approx(1.0, rel=0.05)


def test_linear_can_go_without_a_bias():
    chunk = Linear(in_features=3, out_features=2, bias=False)
    assert [name for name, _ in chunk.named_parameters()] == ["linear.weight"]
    assert torch.equal(chunk(torch.zeros(1, 3)), torch.zeros(1, 2))


def test_widths_below_one_are_refused():
    with pytest.raises(ConfigError, match="`out_features` must be at least 1, but is 0"):
        Linear(in_features=3, out_features=0)


def test_an_unknown_activation_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="one of relu, gelu, silu, tanh, or null, but is `swish`"):
        Linear(in_features=3, out_features=2, activation="swish")  # type: ignore[arg-type]


def test_all_that_a_layer_refuses_is_told_at_once():
    with pytest.raises(ConfigError) as caught:
        Linear(in_features=0, out_features=0, activation="swish")  # type: ignore[arg-type]
    assert len(caught.value.faults) == 3
