from __future__ import annotations

import pytest
import torch

from ppframe.data import Dataset
from ppframe.data.synthetic import synthetic
from ppframe.errors import ConfigError
from ppframe.registry import builder

WIDTHS = {"in_features": 6, "out_features": 3, "hidden_features": 16}


def first(data, seed: int = 0, start_step: int = 0):
    return next(data.train_batches(2000, seed, start_step=start_step))


def test_it_is_registered():
    assert builder("data", "synthetic") is synthetic


def test_samples_are_float32_of_the_widths():
    batch = first(synthetic(**WIDTHS))
    assert batch.inputs.shape == (2000, 6)
    assert batch.targets.shape == (2000, 3)
    assert batch.inputs.dtype == batch.targets.dtype == torch.float32


def test_samples_do_not_follow_the_global_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert first(synthetic(**WIDTHS)).targets.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_targets_are_one_function_of_the_inputs_at_every_step():
    noiseless, steps = synthetic(**WIDTHS), range(3)
    batches = [next(noiseless.train_batches(64, 0, start_step=step)) for step in steps]
    inputs = torch.cat([batch.inputs for batch in batches])
    targets = torch.cat([batch.targets for batch in batches])
    hidden = torch.tanh(inputs @ noiseless._first)
    fit = torch.linalg.lstsq(hidden.double(), targets.double()).solution
    torch.testing.assert_close(fit.float(), noiseless._second, atol=1e-4, rtol=1e-4)


def test_a_batch_depends_on_seed_and_step_alone():
    data = synthetic(**WIDTHS)
    steps = data.train_batches(4, 1)
    second = [next(steps), next(steps)][1]
    assert torch.equal(second.inputs, next(data.train_batches(4, 1, start_step=1)).inputs)
    assert not torch.equal(second.inputs, next(data.train_batches(4, 2, start_step=1)).inputs)


def test_validation_is_the_same_each_time_and_not_the_training_data():
    data = synthetic(**WIDTHS)
    one, two = (list(data.validation_batches(4, 2)) for _ in range(2))
    assert [batch.inputs.shape[0] for batch in one] == [4, 4]
    assert all(torch.equal(a.targets, b.targets) for a, b in zip(one, two, strict=True))
    assert not torch.equal(one[0].inputs, next(data.train_batches(4, 0)).inputs)


def test_noise_has_the_deviation_that_is_asked_for():
    clean, noisy = first(synthetic(**WIDTHS)), first(synthetic(**WIDTHS, noise=0.5))
    assert torch.equal(clean.inputs, noisy.inputs)
    assert (noisy.targets - clean.targets).std() == pytest.approx(0.5, rel=0.05)


def test_another_teacher_seed_is_another_function_of_the_same_inputs():
    one, two = first(synthetic(**WIDTHS)), first(synthetic(**WIDTHS, teacher_seed=1))
    assert torch.equal(one.inputs, two.inputs)
    assert not torch.allclose(one.targets, two.targets)


def test_there_is_no_text_and_a_sample_is_one_prediction():
    data: Dataset = synthetic(**WIDTHS)
    assert data.tokens_per_sample == 1
    assert data.unigram_entropy is None
    assert data.decode([1, 2]) is None
    assert data.describe() == "synthetic regression, 6 to 3 features, teacher 0"


@pytest.mark.parametrize(
    ("options", "path"),
    [({"in_features": 0}, "data.in_features"), ({"noise": -1.0}, "data.noise")],
)
def test_options_out_of_range_are_refused(options, path):
    with pytest.raises(ConfigError, match="must be at least") as caught:
        synthetic(**{**WIDTHS, **options})
    assert caught.value.path == path
