"""Randomness of a forward pass: one stream for each model chunk, step and microbatch.

Dropout drawn from one global generator depends on the order in which microbatches run, and so on
ranks, chunks and schedule. Here the generator is seeded anew before each model chunk, from numbers
that no layout changes: the seed, the step, the chunk's place in the unsplit model, the microbatch.
"""

from __future__ import annotations

from typing import final

import torch

_MASK = (1 << 64) - 1


def mixed(*numbers: int) -> int:
    """A 64-bit number that depends on each of `numbers` and on their order.

    Reference: Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014; its
    finalizer, applied after each number.
    """
    state = 0
    for number in numbers:
        state = _step(state + number)
    return state


def _step(number: int) -> int:
    state = (number + 0x9E3779B97F4A7C15) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return state ^ (state >> 31)


@final
class ChunkStream:
    """Seeds the generator of a device before one model chunk runs a microbatch.

    Args:
        seed: seed of the run.
        chunk: index of the model chunk in the unsplit model.
        device: where the chunk runs; the CPU's generator is seeded in any case.
    """

    __slots__ = ("_chunk_key", "_generators", "_step_key")

    def __init__(self, seed: int, chunk: int, device: torch.device) -> None:
        self._chunk_key = mixed(seed, chunk)
        self._step_key = self._chunk_key
        self._generators = generators_of(device)

    def begin_step(self, step: int) -> None:
        """Say which step the next microbatches belong to."""
        self._step_key = mixed(self._chunk_key, step)

    def enter(self, microbatch: int) -> None:
        """Seed for a microbatch of this step."""
        seed = _step(self._step_key + microbatch)
        for generator in self._generators:
            generator.manual_seed(seed)


def generators_of(device: torch.device) -> tuple[torch.Generator, ...]:
    """The generators that modules on this device draw from."""
    if device.type != "cuda":
        return (torch.default_generator,)
    torch.cuda.init()  # type: ignore[no-untyped-call]
    index = torch.cuda.current_device() if device.index is None else device.index
    return (torch.default_generator, torch.cuda.default_generators[index])
