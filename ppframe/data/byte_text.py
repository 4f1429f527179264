"""Text as bytes for language models: each byte is a token, the target is the byte that follows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import final

import torch
from torch import Tensor

from ppframe.data.base import Batch, Dataset, random_stream, require_at_least
from ppframe.errors import ConfigError

NUM_BYTE_VALUES = 256


@final
class ByteText(Dataset):
    """Windows of `seq_len` bytes out of a training text and a validation text.

    Training windows start anywhere, drawn with replacement; validation windows stand evenly spaced
    over the whole validation text, and overlap only when it is short.

    Args:
        train: the text to learn from.
        validation: the text to be judged on.
        seq_len: length T of a window, in bytes.
        source: where the text comes from, for `describe`.

    Raises:
        ConfigError: a text holds no window of `seq_len` bytes and the byte that follows.
    """

    def __init__(self, train: bytes, validation: bytes, *, seq_len: int, source: str) -> None:
        require_at_least("data.seq_len", seq_len, 1)
        for part, text in (("training", train), ("validation", validation)):
            if len(text) <= seq_len:
                raise ConfigError(
                    f"must be shorter than the {part} text, but is {seq_len} ({part} text of "
                    f"{len(text)} bytes, from {source}). Lower it, give more text, or change "
                    f"`data.validation_fraction`.",
                    path="data.seq_len",
                )
        self._train = _as_tensor(train)
        self._validation = _as_tensor(validation)
        self._seq_len = seq_len
        self._source = source
        self._unigram_entropy = unigram_entropy(self._train, self._validation)

    @property
    def tokens_per_sample(self) -> int:
        """Length of a window, in bytes."""
        return self._seq_len

    @property
    def unigram_entropy(self) -> float:
        """Entropy of the byte frequencies of training and validation text, nats per byte."""
        return self._unigram_entropy

    def train_batches(self, batch_size: int, seed: int, *, start_step: int = 0) -> Iterator[Batch]:
        """Endless batches: inputs and targets int64 [B, T], a function of (seed, step)."""
        require_at_least("pipeline.batch_size", batch_size, 1)
        num_starts = len(self._train) - self._seq_len
        for step in itertools.count(start_step):
            generator = random_stream("train", seed, step)
            starts = torch.randint(num_starts, (batch_size,), generator=generator)
            yield self._windows(self._train, starts)

    def validation_batches(self, batch_size: int, num_batches: int) -> Iterator[Batch]:
        """`num_batches` batches, int64 [B, T] each, the same at every call."""
        require_at_least("pipeline.batch_size", batch_size, 1)
        num_windows = batch_size * num_batches
        last_start = len(self._validation) - self._seq_len - 1
        starts = torch.arange(num_windows) * last_start // max(1, num_windows - 1)
        for index in range(num_batches):
            batch_starts = starts[index * batch_size : (index + 1) * batch_size]
            yield self._windows(self._validation, batch_starts)

    def decode(self, tokens: Sequence[int] | Tensor) -> str:
        """Bytes as UTF-8, with a replacement character where they are none."""
        values = tokens.flatten().tolist() if isinstance(tokens, Tensor) else tokens
        return bytes(values).decode("utf-8", errors="replace")

    def describe(self) -> str:
        """Source and sizes."""
        return (
            f"{self._source}: {len(self._train) / 1e6:.2f} MB to train, "
            f"{len(self._validation) / 1e6:.2f} MB to validate"
        )

    def _windows(self, text: Tensor, starts: Tensor) -> Batch:
        """Inputs and targets [B, T] of the windows at `starts` [B]."""
        positions = starts[:, None] + torch.arange(self._seq_len + 1)
        windows = text[positions].long()
        return Batch(windows[:, :-1].contiguous(), windows[:, 1:].contiguous())


def unigram_entropy(*texts: Tensor) -> float:
    """Entropy of the byte frequencies of all texts together.

    Args:
        texts: uint8, 1-dim each.

    Returns:
        nats per byte, 0 to ln 256.
    """
    counts = sum(torch.bincount(text, minlength=NUM_BYTE_VALUES) for text in texts)
    assert isinstance(counts, Tensor)
    share = counts.double() / counts.sum()
    return float(-torch.xlogy(share, share).sum())


def _as_tensor(text: bytes) -> Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)
