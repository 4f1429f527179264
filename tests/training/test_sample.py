"""A model's text, through the pipeline's forward pass."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ppframe.runtime import Pipeline
from ppframe.training.sample import SampleSettings, write_sample
from tests.training.toy import AlphabetData, LinearData, linear_modules


class NextLetter(nn.Module):
    """Logits that are sure of the letter after the last; refuses more than 8 letters."""

    def __init__(self, certainty: float = 50.0) -> None:
        super().__init__()
        self.certainty = certainty

    def forward(self, letters):
        assert letters.shape[1] <= 8
        return nn.functional.one_hot((letters + 1) % 8, 8) * self.certainty


def make_pipeline(module: nn.Module) -> Pipeline:
    return Pipeline(
        [module], loss=nn.MSELoss(), schedule="1f1b", ranks=1, chunks_per_rank=1,
        microbatch_size=1,
    )  # fmt: skip


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_text_goes_on_from_held_out_data_beyond_the_context(temperature):
    settings = SampleSettings(num_tokens=10, prompt_tokens=3, temperature=temperature)
    sample = write_sample(make_pipeline(NextLetter()), AlphabetData(), settings)
    assert sample is not None
    assert (sample.prompt, sample.continuation) == ("abc", "defghabcde")


def test_a_sample_depends_on_its_seed_and_leaves_the_generators_alone():
    pipeline = make_pipeline(NextLetter(certainty=1.0))

    def sample(seed: int) -> str:
        written = write_sample(pipeline, AlphabetData(), SampleSettings(num_tokens=50, seed=seed))
        assert written is not None
        return written.continuation

    before = torch.get_rng_state()
    first = sample(1)
    torch.rand(3)
    assert sample(1) == first != sample(2)
    torch.set_rng_state(before)
    sample(1)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_no_language_model_gives_no_sample():
    assert write_sample(make_pipeline(linear_modules()[0]), LinearData(), SampleSettings()) is None
    letters = AlphabetData()
    no_tokens = SampleSettings(num_tokens=0)
    assert write_sample(make_pipeline(NextLetter()), letters, no_tokens) is None
    whole = nn.Flatten()
    assert write_sample(make_pipeline(whole), letters, SampleSettings()) is None
    broken = make_pipeline(NextLetter(certainty=float("nan")))
    assert write_sample(broken, letters, SampleSettings()) is None
