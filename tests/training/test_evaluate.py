"""Over several batches the loss is that of their union."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ppframe.errors import ConfigError
from ppframe.runtime import Pipeline
from ppframe.training.evaluate import evaluate
from ppframe.training.loss import SequenceCrossEntropy
from tests.training.toy import letter_modules, linear_modules


def union_loss(modules, batches, loss) -> float:
    with torch.no_grad():
        output = nn.Sequential(*modules)(torch.cat([inputs for inputs, _ in batches]))
        return float(loss(output, torch.cat([targets for _, targets in batches])))


def pipeline(modules, loss) -> Pipeline:
    return Pipeline(modules, loss=loss, schedule="1f1b", ranks=2, chunks_per_rank=1,
                    microbatch_size=2)  # fmt: skip


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.MSELoss(reduction="sum"), nn.L1Loss()])
def test_batches_of_different_sizes_weigh_by_samples(loss):
    generator = torch.Generator().manual_seed(1)
    batches = [
        (torch.randn(n, 3, generator=generator), torch.randn(n, 1, generator=generator))
        for n in (8, 6, 1)
    ]
    modules = linear_modules()
    expected = union_loss(modules, batches, loss)
    assert evaluate(pipeline(modules, loss), batches, loss=loss) == pytest.approx(expected)


def letter_batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Valid targets: 5, none, and 12 of 12."""
    generator = torch.Generator().manual_seed(2)
    batches = [torch.randint(8, (3, 4), generator=generator) for _ in range(3)]
    targets = [torch.randint(8, (3, 4), generator=generator) for _ in range(3)]
    targets[0].view(-1)[5:] = -100
    targets[1][:] = -100
    return list(zip(batches, targets, strict=True))


@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 2.0, 1.0, 3.0, 1.0, 0.0, 1.0]])
def test_a_loss_with_its_own_denominator_weighs_by_it(weights):
    loss = SequenceCrossEntropy(class_weights=weights)
    batches, modules = letter_batches(), letter_modules()
    expected = union_loss(modules, batches, loss)
    assert evaluate(pipeline(modules, loss), batches, loss=loss) == pytest.approx(expected)


class LastLetter(nn.Module):
    def forward(self, logits):
        return logits[:, -1]


def test_torchs_cross_entropy_weighs_by_valid_targets():
    loss = nn.CrossEntropyLoss(ignore_index=3)
    modules = [*letter_modules(), LastLetter()]
    inputs, valid = letter_batches()[0][0], torch.tensor([1, 3, 2])
    batches = [(inputs, valid), (inputs, torch.full((3,), 3)), (inputs[:1], torch.tensor([7]))]
    expected = union_loss(modules, batches, loss)
    pipe = Pipeline(modules, loss=loss, ranks=1, chunks_per_rank=1, schedule="1f1b",
                    microbatch_size=2)  # fmt: skip
    assert evaluate(pipe, batches, loss=loss) == pytest.approx(expected)


def test_nothing_to_evaluate_is_an_error():
    loss = nn.MSELoss()
    with pytest.raises(ConfigError) as caught:
        evaluate(pipeline(linear_modules(), loss), [], loss=loss)
    assert caught.value.path == "evaluation.num_batches"
