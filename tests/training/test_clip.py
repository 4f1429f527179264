from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from ppframe.errors import ConfigError
from ppframe.training.clip import clip_global_norm, global_norm


def parameter(*gradient: float, dtype: torch.dtype = torch.float32) -> nn.Parameter:
    made = nn.Parameter(torch.zeros(len(gradient), dtype=dtype))
    made.grad = torch.tensor(gradient, dtype=dtype)
    return made


def gradient(of: nn.Parameter) -> torch.Tensor:
    assert of.grad is not None
    return of.grad


def test_the_norm_is_one_over_all_parameters():
    assert global_norm([parameter(3.0, 0.0), parameter(4.0)]).item() == 5.0


def test_the_order_of_parameters_does_not_show():
    torch.manual_seed(0)
    parameters = [parameter(*torch.randn(50).tolist()) for _ in range(40)]
    norms = {global_norm(parameters[start:] + parameters[:start]).item() for start in range(40)}
    assert len(norms) == 1


def test_gradients_above_the_limit_are_scaled_by_one_factor():
    parameters = [parameter(3.0, 0.0), parameter(4.0)]
    assert clip_global_norm(parameters, 0.5).item() == 5.0
    torch.testing.assert_close(parameters[0].grad, torch.tensor([0.3, 0.0]))
    torch.testing.assert_close(parameters[1].grad, torch.tensor([0.4]))


def test_gradients_below_the_limit_stay_bit_for_bit():
    parameters = [parameter(0.1, 0.2), parameter(0.3)]
    before = [gradient(p).clone() for p in parameters]
    clip_global_norm(parameters, 100.0)
    assert all(torch.equal(gradient(p), grad) for p, grad in zip(parameters, before, strict=True))


@pytest.mark.parametrize("max_norm", [1e-3, 1.0, 1e3, math.inf])
def test_it_equals_torch_on_the_whole_model(max_norm):
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 3))
    ours(torch.randn(4, 7)).square().sum().backward()
    theirs = copy.deepcopy(ours)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        other.grad = gradient(mine).clone()
    norm = clip_global_norm(ours.parameters(), max_norm)
    torch.testing.assert_close(norm, nn.utils.clip_grad_norm_(theirs.parameters(), max_norm))
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_parameters_without_gradients_add_nothing():
    frozen = nn.Parameter(torch.ones(3))
    assert clip_global_norm([frozen, parameter(2.0)], 1.0).item() == 2.0
    assert frozen.grad is None
    assert clip_global_norm([frozen], 1.0).item() == 0.0
    assert clip_global_norm([], 1.0).item() == 0.0


def test_a_shared_parameter_counts_once():
    shared = parameter(3.0)
    assert clip_global_norm(iter([shared, parameter(4.0), shared]), 0.5).item() == 5.0
    torch.testing.assert_close(shared.grad, torch.tensor([0.3]))


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_norm_that_is_not_finite_is_returned_and_nothing_is_scaled(bad):
    parameters = [parameter(3.0), parameter(bad, 1.0)]
    norm = clip_global_norm(parameters, 0.5)
    assert not norm.isfinite()
    assert gradient(parameters[0]).item() == 3.0
    assert gradient(parameters[1])[1].item() == 1.0


def test_half_precision_gradients_do_not_overflow_the_norm():
    parameters = [parameter(6e4, 6e4, dtype=torch.float16), parameter(8e4)]
    norm = clip_global_norm(parameters, 1.0)
    assert norm.dtype == torch.float32
    assert norm.item() == pytest.approx(math.sqrt(2 * 6e4**2 + 8e4**2), rel=1e-3)
    assert gradient(parameters[0]).dtype == torch.float16


def test_double_precision_gradients_keep_it():
    assert global_norm([parameter(1.0), parameter(1e-12, dtype=torch.float64)]).dtype == (
        torch.float64
    )


@pytest.mark.parametrize("max_norm", [0.0, -1.0, math.nan])
def test_a_limit_that_is_not_above_zero_is_refused(max_norm):
    with pytest.raises(ConfigError) as caught:
        clip_global_norm([parameter(1.0)], max_norm)
    assert caught.value.path == "clip_grad_norm"
