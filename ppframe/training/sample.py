"""A text that the model writes, token by token, through the pipeline's forward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from ppframe.data.base import Dataset
from ppframe.runtime import Pipeline


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSettings:
    """How a text is written.

    Args:
        num_tokens: tokens to write; 0 for no sample.
        prompt_tokens: tokens of held-out data that it goes on from.
        temperature: logits are divided by it; 0 always takes the likeliest token.
        seed: seed of the sample's own generator; training's randomness is left alone.
    """

    num_tokens: int = 200
    prompt_tokens: int = 32
    temperature: float = 0.8
    seed: int = 0


@final
@dataclass(frozen=True, slots=True)
class Sample:
    """A prompt from the data, and how the model went on."""

    prompt: str
    continuation: str


def write_sample(pipeline: Pipeline, dataset: Dataset, settings: SampleSettings) -> Sample | None:
    """Let a language model go on from the beginning of a held-out sample.

    Args:
        pipeline: maps token ids [1, L] to logits [1, L, V].
        dataset: gives the prompt and turns ids into text.
        settings: how much and how boldly.

    Returns:
        the text; None where the data is no text or the model gives no logits for each token.
    """
    batch = next(iter(dataset.validation_batches(1, 1)), None)
    if not settings.num_tokens or batch is None or not _is_tokens(batch.inputs):
        return None
    context_length = batch.inputs.shape[1]
    prompt = batch.inputs[:1, : settings.prompt_tokens]
    prompt_text = dataset.decode(prompt[0])
    if prompt_text is None:
        return None
    tokens = prompt
    generator = torch.Generator().manual_seed(settings.seed)
    for _ in range(settings.num_tokens):
        context = tokens[:, -context_length:]
        logits = pipeline.forward(context)
        if not isinstance(logits, Tensor) or logits.shape[:-1] != context.shape:
            return None
        chosen = _choose(logits[0, -1].float().cpu(), settings.temperature, generator)
        if chosen is None:
            return None
        tokens = torch.cat((tokens, chosen.to(tokens).view(1, 1)), dim=1)
    continuation = dataset.decode(tokens[0, prompt.shape[1] :])
    return None if continuation is None else Sample(prompt_text, continuation)


def _is_tokens(inputs: object) -> bool:
    return (
        isinstance(inputs, Tensor)
        and inputs.dim() == 2
        and not inputs.is_floating_point()
        and inputs.dtype is not torch.bool
    )


def _choose(logits: Tensor, temperature: float, generator: torch.Generator) -> Tensor | None:
    """One token id drawn from logits [V]; None where they are not finite."""
    if not bool(logits.isfinite().any()) or bool(logits.isnan().any()):
        return None
    if temperature == 0.0:
        return logits.argmax()
    probabilities = torch.softmax(logits / temperature, dim=0)
    return torch.multinomial(probabilities, 1, generator=generator)
