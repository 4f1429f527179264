"""Running a model without leaving traces in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from ppframe.stage.randomness import generators_of


@contextmanager
def untouched(modules: Sequence[nn.Module], devices: Sequence[torch.device]) -> Iterator[None]:
    """Put buffers, gradients and random generators back at the end.

    In the block parameters begin without gradients. Their values are nobody's to change but an
    optimizer's, so they aren't copied.

    Args:
        modules: the model.
        devices: where it runs.
    """
    generators = {generator for device in devices for generator in generators_of(device)}
    states = [(generator, generator.get_state()) for generator in generators]
    parts = [part for module in modules for part in module.modules()]
    buffers = [
        (part, name, buffer, buffer.clone())
        for part in parts
        for name, buffer in part._buffers.items()
        if buffer is not None
    ]
    gradients = [(p, p.grad) for module in modules for p in module.parameters()]
    for parameter, _ in gradients:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
        with torch.no_grad():
            for part, name, buffer, copy in buffers:
                part._buffers[name] = buffer.copy_(copy)
        for generator, state in states:
            generator.set_state(state)
