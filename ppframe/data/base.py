"""What a dataset promises to the trainer, and the random streams that its samples come from.

A training batch is a function of (seed, step) and nothing else. So a run that resumes at step 500
sees what the unbroken run saw, without any state of the data in the checkpoint.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ppframe.errors import ConfigError


class Batch(NamedTuple):
    """Samples along dimension 0: what the model gets, and what its output should be."""

    inputs: Tensor
    targets: Tensor


class Dataset(ABC):
    """Batches for training and validation, on the CPU."""

    @property
    @abstractmethod
    def tokens_per_sample(self) -> int:
        """Predictions that a sample asks for: the sequence length of text, 1 for regression."""

    @property
    @abstractmethod
    def unigram_entropy(self) -> float | None:
        """Nats per token of the best guess that knows no context; None where there are no tokens.

        A language model has learned something when its validation loss falls well below.
        """

    @abstractmethod
    def train_batches(self, batch_size: int, seed: int, *, start_step: int = 0) -> Iterator[Batch]:
        """Endless training batches; the first belongs to `start_step`, counted from 0."""

    @abstractmethod
    def validation_batches(self, batch_size: int, num_batches: int) -> Iterator[Batch]:
        """`num_batches` batches from held-out data, the same at every call."""

    @abstractmethod
    def decode(self, tokens: Sequence[int] | Tensor) -> str | None:
        """Readable text of a sequence of tokens; None where samples are no text."""

    @abstractmethod
    def describe(self) -> str:
        """One line for people: where the data comes from, and how much there is."""


def random_stream(*key: int | str) -> torch.Generator:
    """A generator on the CPU whose draws depend on the key alone, on every machine.

    Args:
        key: what the draws are for, such as `("train", seed, step)`.
    """
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big", signed=True))


def require_at_least(path: str, value: int, least: int) -> None:
    """Raise ConfigError unless the option at dotted `path` is at least `least`."""
    if value < least:
        raise ConfigError(f"must be at least {least}, but is {value}. Raise it.", path=path)
