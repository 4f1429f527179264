"""A small regression problem, a small language, and what a trainer needs to learn them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import torch
from torch import Tensor, nn

from ppframe.data.base import Batch, Dataset, random_stream
from ppframe.metrics import RunInfo, Sink
from ppframe.runtime import Pipeline
from ppframe.training.trainer import Trainer, TrainerSettings
from ppframe.training.update import Update


@final
class LinearData(Dataset):
    """y = x·w with w = (1, 2, 3)."""

    tokens_per_sample = 1
    unigram_entropy = None

    def train_batches(self, batch_size: int, seed: int, *, start_step: int = 0) -> Iterator[Batch]:
        step = start_step
        while True:
            yield self._batch(batch_size, "train", seed, step)
            step += 1

    def validation_batches(self, batch_size: int, num_batches: int) -> Iterator[Batch]:
        for index in range(num_batches):
            yield self._batch(batch_size, "validation", index)

    def decode(self, tokens: Sequence[int] | Tensor) -> str | None:
        return None

    def describe(self) -> str:
        return "a plane"

    def _batch(self, batch_size: int, *key: int | str) -> Batch:
        inputs = torch.randn(batch_size, 3, generator=random_stream(*key))
        return Batch(inputs, inputs @ torch.tensor([[1.0], [2.0], [3.0]]))


@final
class AlphabetData(Dataset):
    """The alphabet a…h round and round, from any letter on."""

    tokens_per_sample = 8
    unigram_entropy = 2.079

    def train_batches(self, batch_size: int, seed: int, *, start_step: int = 0) -> Iterator[Batch]:
        step = start_step
        while True:
            generator = random_stream("train", seed, step)
            yield self._batch(torch.randint(8, (batch_size, 1), generator=generator))
            step += 1

    def validation_batches(self, batch_size: int, num_batches: int) -> Iterator[Batch]:
        for index in range(num_batches):
            yield self._batch(torch.arange(batch_size)[:, None] + index)

    def decode(self, tokens: Sequence[int] | Tensor) -> str | None:
        return "".join("abcdefgh"[int(token)] for token in tokens)

    def describe(self) -> str:
        return "the alphabet"

    def _batch(self, first: Tensor) -> Batch:
        letters = (first + torch.arange(9)) % 8
        return Batch(letters[:, :-1], letters[:, 1:])


@final
@dataclass
class MemorySink(Sink):
    """Keeps what it is given."""

    run: RunInfo | None = None
    rows: list[dict[str, float]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    summary: Mapping[str, Any] | None = None
    exit_code: int | None = None

    def start(self, run: RunInfo) -> None:
        self.run = run

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.rows.append({"step": step, **metrics})

    def text(self, name: str, text: str) -> None:
        self.texts[name] = text

    def finish(self, summary: Mapping[str, Any], exit_code: int) -> None:
        self.summary, self.exit_code = summary, exit_code


def linear_modules() -> list[nn.Module]:
    """Four modules, 3 → 1, the same at every call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return [nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 1)]


def letter_modules() -> list[nn.Module]:
    """Two modules that give logits of the next letter from the last one alone."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return [nn.Embedding(8, 16), nn.Linear(16, 8)]


def make_trainer(
    modules: Sequence[nn.Module] | None = None,
    dataset: Dataset | None = None,
    *,
    loss: nn.Module | None = None,
    lr: float = 0.05,
    clip_grad_norm: float | None = None,
    **settings: Any,
) -> Trainer:
    """A trainer of `modules` on two ranks with batches of 8 in 4 microbatches."""
    loss = nn.MSELoss() if loss is None else loss
    pipeline = Pipeline(
        linear_modules() if modules is None else modules,
        loss=loss,
        schedule="1f1b",
        ranks=2,
        chunks_per_rank=1,
        microbatch_size=2,
    )
    update = Update(
        pipeline.parameters_by_rank(),
        make_optimizer=lambda named: torch.optim.SGD(list(named), lr=lr),
        lr_schedule=lambda step, total: 1.0,
        clip_grad_norm=clip_grad_norm,
    )
    return Trainer(
        pipeline,
        LinearData() if dataset is None else dataset,
        update=update,
        loss=loss,
        settings=TrainerSettings(
            **{"num_steps": 4, "batch_size": 8, "num_microbatches": 4, **settings}
        ),
    )
