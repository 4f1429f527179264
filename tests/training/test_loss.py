from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from ppframe.errors import ConfigError
from ppframe.registry import builder
from ppframe.training.loss import SequenceCrossEntropy, cross_entropy, mse

OPTIONS: list[dict[str, Any]] = [
    {},
    {"ignore_index": 2},
    {"label_smoothing": 0.1},
    {"class_weights": (0.5, 1.0, 2.0, 0.0, 1.5)},
    {"class_weights": (0.5, 1.0, 2.0, 0.0, 1.5), "ignore_index": 1, "label_smoothing": 0.2},
]


def samples() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 7, 5, generator=generator, dtype=torch.float64)
    target = torch.randint(5, (4, 7), generator=generator)
    target[0] = target[3, :5] = -100
    return logits.requires_grad_(), target


def torch_loss(options: dict[str, Any], reduction: str = "mean") -> nn.CrossEntropyLoss:
    """torch's own, which takes the classes in dimension 1."""
    options = dict(options)
    weights = options.pop("class_weights", None)
    weight = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    return nn.CrossEntropyLoss(weight=weight, reduction=reduction, **options)


def without_ignored(target: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
    """Targets for a loss whose ignore_index is not -100."""
    return target.where(target != -100, options.get("ignore_index", -100))


def test_losses_are_registered():
    assert builder("loss", "cross_entropy") is cross_entropy
    assert builder("loss", "mse") is mse


def test_cross_entropy_by_hand():
    logits = torch.tensor([[[0.0, math.log(3.0)], [0.0, 0.0]]])  # shares 1/4, 3/4 and 1/2, 1/2
    loss = cross_entropy()
    expected = (math.log(4 / 3) + math.log(2)) / 2
    assert loss(logits, torch.tensor([[1, 0]])).item() == pytest.approx(expected)
    assert loss(logits, torch.tensor([[0, -100]])).item() == pytest.approx(math.log(4))


@pytest.mark.parametrize("options", OPTIONS)
def test_value_and_gradient_are_those_of_torch(options):
    logits, target = samples()
    target = without_ignored(target, options)
    loss = cross_entropy(**options)(logits, target)
    expected = torch_loss(options)(logits.transpose(1, 2), target)
    torch.testing.assert_close(loss, expected)
    ours, theirs = (torch.autograd.grad(value, logits)[0] for value in (loss, expected))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("options", OPTIONS)
def test_uneven_parts_weighted_by_denominator_make_the_whole(options):
    logits, target = samples()
    target = without_ignored(target, options)
    loss = cross_entropy(**options)
    total = loss.denominator(target)
    parts = [
        loss(part, part_target) * loss.denominator(part_target) / total
        for part, part_target in zip(logits.split([1, 2, 1]), target.split([1, 2, 1]), strict=True)
    ]
    torch.testing.assert_close(sum(parts), loss(logits, target))


def test_denominator_counts_valid_targets_or_adds_their_weights():
    target = torch.tensor([[0, 1, -100], [1, -100, -100]])
    assert cross_entropy().denominator(target).item() == 3
    assert cross_entropy(ignore_index=1).denominator(target).item() == 4
    assert cross_entropy(class_weights=[0.5, 2.0]).denominator(target).item() == 4.5


def test_only_ignored_targets_give_zero_and_no_gradient():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    loss = cross_entropy()(logits, torch.full((2, 3), -100))
    loss.backward()
    assert loss.item() == 0.0
    assert logits.grad is not None
    assert not logits.grad.any()


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_targets_of_any_shape_fit_logits_with_one_dimension_more(shape):
    logits, target = torch.randn(*shape, 5), torch.randint(5, shape)
    expected = nn.functional.cross_entropy(logits.reshape(-1, 5), target.reshape(-1))
    torch.testing.assert_close(cross_entropy()(logits, target), expected)


def test_half_precision_logits_are_summed_in_float32():
    logits = torch.randn(50, 20, 5).bfloat16()
    target = torch.randint(5, (50, 20))
    loss = cross_entropy()(logits, target)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, cross_entropy()(logits.float(), target))


def test_classes_in_another_dimension_are_refused():
    with pytest.raises(ConfigError, match=r"\[2, 5, 3\] \(targets \[2, 3\]\)") as caught:
        cross_entropy()(torch.randn(2, 5, 3), torch.zeros(2, 3, dtype=torch.int64))
    assert caught.value.path == "loss"


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"label_smoothing": 1.5}, "loss.label_smoothing"),
        ({"class_weights": []}, "loss.class_weights"),
        ({"class_weights": [1.0, -1.0]}, "loss.class_weights"),
    ],
)
def test_options_out_of_range_are_refused(options, path):
    with pytest.raises(ConfigError) as caught:
        cross_entropy(**options)
    assert caught.value.path == path


def test_class_weights_move_with_the_loss_and_are_no_parameters():
    loss = SequenceCrossEntropy(class_weights=[1.0, 2.0])
    assert list(loss.parameters()) == []
    moved = loss.to(torch.float64).class_weights
    assert moved is not None
    assert moved.dtype == torch.float64


def test_mse_is_the_mean_over_all_elements():
    output, target = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 0.0], [3.0, 1.0]])
    assert mse()(output, target).item() == (4 + 9) / 4
