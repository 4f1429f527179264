"""Regression without files: a fixed random network that another is to imitate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import final

import torch
from torch import Tensor

from ppframe.data.base import Batch, Dataset, random_stream, require_at_least
from ppframe.errors import ConfigError
from ppframe.registry import register


@final
class Regression(Dataset):
    """Fresh samples of `y = tanh(x A) B + noise` with a fixed random teacher (A, B).

    x is standard normal; A and B are scaled such that y has a variance near one half.

    Args:
        in_features: width I of x.
        out_features: width O of y.
        hidden_features: width of the teacher's hidden layer.
        noise: standard deviation of what is added to each target.
        teacher_seed: which teacher.
    """

    def __init__(
        self,
        *,
        in_features: int,
        out_features: int,
        hidden_features: int,
        noise: float,
        teacher_seed: int,
    ) -> None:
        for name, size in (
            ("in_features", in_features),
            ("out_features", out_features),
            ("hidden_features", hidden_features),
        ):
            require_at_least(f"data.{name}", size, 1)
        if noise < 0.0:
            raise ConfigError(f"must be at least 0, but is {noise}. Raise it.", path="data.noise")
        generator = random_stream("teacher", teacher_seed)
        self._first = _scaled_normal(in_features, hidden_features, generator)
        self._second = _scaled_normal(hidden_features, out_features, generator)
        self._noise = noise
        self._teacher_seed = teacher_seed

    @property
    def tokens_per_sample(self) -> int:
        """One: a sample is one prediction."""
        return 1

    @property
    def unigram_entropy(self) -> None:
        """None: there are no tokens."""
        return None

    def train_batches(self, batch_size: int, seed: int, *, start_step: int = 0) -> Iterator[Batch]:
        """Endless batches: float32 [B, I] and [B, O], a function of (seed, step)."""
        require_at_least("pipeline.batch_size", batch_size, 1)
        for step in itertools.count(start_step):
            yield self._sample(batch_size, random_stream("train", seed, step))

    def validation_batches(self, batch_size: int, num_batches: int) -> Iterator[Batch]:
        """`num_batches` batches, float32 [B, I] and [B, O], the same at every call."""
        require_at_least("pipeline.batch_size", batch_size, 1)
        for index in range(num_batches):
            yield self._sample(batch_size, random_stream("validation", index))

    def decode(self, tokens: Sequence[int] | Tensor) -> None:  # noqa: ARG002 (no text to give)
        """None: samples are no text."""
        return None

    def describe(self) -> str:
        """Widths and teacher."""
        widths = f"{self._first.shape[0]} to {self._second.shape[1]} features"
        return f"synthetic regression, {widths}, teacher {self._teacher_seed}"

    def _sample(self, batch_size: int, generator: torch.Generator) -> Batch:
        inputs = _normal(batch_size, self._first.shape[0], generator)
        targets = torch.tanh(inputs @ self._first) @ self._second
        noise = _normal(batch_size, self._second.shape[1], generator)
        return Batch(inputs, targets + self._noise * noise)


@register("data", "synthetic")
def synthetic(
    *,
    in_features: int,
    out_features: int,
    hidden_features: int = 64,
    noise: float = 0.0,
    teacher_seed: int = 0,
) -> Regression:
    """Regression on a random teacher, for models of vectors and a loss such as `mse`.

    Args:
        in_features: width of a sample.
        out_features: width of a target.
        hidden_features: width of the teacher's hidden layer.
        noise: standard deviation of what is added to each target: its square is the least mean
            squared error that can be reached.
        teacher_seed: which teacher; independent of the run's seed, so that runs can be compared.

    Raises:
        ConfigError: an option is out of range.
    """
    return Regression(
        in_features=in_features,
        out_features=out_features,
        hidden_features=hidden_features,
        noise=noise,
        teacher_seed=teacher_seed,
    )


def _normal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.randn(rows, columns, generator=generator, dtype=torch.float32)


def _scaled_normal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """[rows, columns], of which a unit-variance row vector times it has unit variance."""
    return _normal(rows, columns, generator) / math.sqrt(rows)
