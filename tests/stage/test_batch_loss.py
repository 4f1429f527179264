import functools

import pytest
import torch
from torch import nn
from torch.nn import functional

from ppframe.errors import ConfigError
from ppframe.stage.batch_loss import BatchLoss

SIZES = (4, 4, 2)


def through_microbatches(function, output, target):
    """Weighted sum of microbatch losses and its gradient, with the weights that are asked for."""
    loss = BatchLoss(function)
    leaf = output.clone().requires_grad_()
    outputs, targets = leaf.split(SIZES), target.split(SIZES)
    weights = loss.weights(targets, SIZES)
    values = [loss(o, t) for o, t in zip(outputs, targets, strict=True)]
    total = sum(
        value * weight
        for value, weight in zip(values, weights.gradient, strict=True)
        if weight is not None
    )
    total.backward()
    alone = [v.item() * w for v, w in zip(values, weights.report, strict=True)]
    return total.detach(), leaf.grad, alone


def plain(function, output, target):
    leaf = output.clone().requires_grad_()
    value = function(leaf, target)
    value.backward()
    return value.detach(), leaf.grad


def assert_exact(function, output, target):
    total, gradient, alone = through_microbatches(function, output, target)
    wanted, wanted_gradient = plain(function, output, target)
    torch.testing.assert_close(total, wanted)
    torch.testing.assert_close(gradient, wanted_gradient)
    singly = [
        float(function(o, t)) for o, t in zip(output.split(SIZES), target.split(SIZES), strict=True)
    ]
    torch.testing.assert_close(torch.tensor(alone), torch.tensor(singly), equal_nan=True)


@pytest.fixture
def logits():
    return torch.randn(10, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture
def classes():
    return torch.tensor([0, 1, -100, -100, -100, -100, -100, 2, 3, 4])


CLASS_WEIGHT = torch.tensor([0.5, 2.0, 1.0, 3.0, 0.25], dtype=torch.float64)


@pytest.mark.parametrize(
    "function",
    [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(ignore_index=2, label_smoothing=0.1),
        nn.CrossEntropyLoss(weight=CLASS_WEIGHT),
        nn.CrossEntropyLoss(weight=CLASS_WEIGHT, label_smoothing=0.2),
        nn.CrossEntropyLoss(reduction="sum"),
        functional.cross_entropy,
        functools.partial(functional.cross_entropy, ignore_index=3),
        functools.partial(functional.cross_entropy, reduction="sum"),
    ],
)
def test_valid_targets_spread_unevenly_weigh_as_in_the_whole_batch(function, logits, classes):
    if getattr(function, "ignore_index", -100) != -100 or (
        isinstance(function, functools.partial) and "ignore_index" in function.keywords
    ):
        classes = classes.clamp(min=0)
    assert_exact(function, logits, classes)


def test_nll_loss_divides_by_valid_targets(logits, classes):
    assert_exact(nn.NLLLoss(), logits.log_softmax(1), classes)
    assert_exact(functional.nll_loss, logits.log_softmax(1), classes)


def test_class_probabilities_are_a_mean_over_samples(logits):
    assert_exact(nn.CrossEntropyLoss(), logits, logits.flip(0).softmax(1))


@pytest.mark.parametrize(
    "function",
    [
        nn.MSELoss(),
        nn.MSELoss(reduction="sum"),
        nn.L1Loss(),
        nn.SmoothL1Loss(),
        nn.BCEWithLogitsLoss(),
        nn.KLDivLoss(reduction="batchmean"),
        functional.mse_loss,
        functools.partial(functional.mse_loss, reduction="sum"),
        lambda output, target: ((output - target) ** 4).mean(),
    ],
)
def test_means_over_samples_weigh_by_samples_and_sums_are_added(function, logits):
    assert_exact(function, logits, logits.flip(0).sigmoid())


def test_sequence_targets_count_every_position():
    logits = torch.randn(10, 5, 3, dtype=torch.float64)
    target = torch.randint(0, 5, (10, 3))
    target[:7, 1:] = -100
    assert_exact(nn.CrossEntropyLoss(), logits, target)


def test_a_loss_may_say_its_own_denominator(logits):
    class OverPositive(nn.Module):
        def denominator(self, target):
            return (target > 0).sum()

        def forward(self, output, target):
            return (output * (target > 0)).sum() / (target > 0).sum()

    target = logits.flip(0)
    target[:4] = -1.0
    assert_exact(OverPositive(), logits, target)


def test_a_batch_without_any_valid_target_has_loss_nan_as_in_torch(logits):
    total, gradient, _ = through_microbatches(
        nn.CrossEntropyLoss(), logits, torch.full((10,), -100)
    )
    assert torch.isnan(total)
    assert gradient is not None


def test_a_loss_that_is_no_single_number_is_refused(logits):
    with pytest.raises(ConfigError, match="reduction `none`"):
        BatchLoss(nn.MSELoss(reduction="none"))
    with pytest.raises(ConfigError, match="0-dim"):
        BatchLoss(lambda output, target: output - target)(logits, logits)
