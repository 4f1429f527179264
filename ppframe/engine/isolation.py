"""What a run may change in the process, put back when it ends.

Jobs of a sweep share a process. A default dtype, a seed, a thread count or a log handler that one
leaves behind would change the next; so each begins from the same state and its changes go.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy
import torch


@contextmanager
def isolated(*, seed: int, num_threads: int | None = None) -> Iterator[None]:
    """Begin from the given seed and thread count, and restore everything at the end.

    Restored: default dtype and device, threads, gradient mode and deterministic mode of torch; the
    generators of Python, NumPy and torch; root log handlers and levels; `sys.excepthook`,
    `sys.path`, environment variables, the working directory and warning filters.

    Args:
        seed: for the generators of Python, NumPy and torch on all devices.
        num_threads: intra-op threads of torch; None leaves them.
    """
    with ExitStack() as stack:
        for read, restore in _settings():
            stack.callback(restore, read())
        stack.enter_context(warnings.catch_warnings())
        random.seed(seed)
        numpy.random.seed(seed % (1 << 32))
        torch.manual_seed(seed)
        if num_threads is not None:
            torch.set_num_threads(num_threads)
        yield


@contextmanager
def without_memory() -> Iterator[None]:
    """Tensors that are made within have a shape and a type alone; the process stays as it was."""
    with isolated(seed=0), torch.device("meta"):
        yield


def _settings() -> tuple[tuple[Callable[[], Any], Callable[[Any], object]], ...]:
    """For each thing that a run may change: how to read it, and how to put it back."""
    root = logging.getLogger()
    return (
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_default_device, _set_default_device),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (torch.get_rng_state, torch.set_rng_state),
        (_cuda_states, torch.cuda.set_rng_state_all),
        (numpy.random.get_state, numpy.random.set_state),
        (random.getstate, random.setstate),
        (lambda: (list(root.handlers), root.level), _restore_logging),
        (lambda: sys.excepthook, lambda hook: setattr(sys, "excepthook", hook)),
        (lambda: list(sys.path), lambda path: sys.path.__setitem__(slice(None), path)),
        (lambda: dict(os.environ), _restore_environment),
        (os.getcwd, os.chdir),
    )


def _set_default_device(device: torch.device) -> None:
    """For the CPU this takes the device mode off: left on, it would slow down every call."""
    if torch.get_default_device() != device:
        torch.set_default_device(None if device.type == "cpu" else device)


def _cuda_states() -> list[torch.Tensor]:
    is_used: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.get_rng_state_all() if is_used else []


def _restore_logging(before: tuple[list[logging.Handler], int]) -> None:
    root, (handlers, level) = logging.getLogger(), before
    for handler in list(root.handlers):
        if handler not in handlers:
            root.removeHandler(handler)
            handler.close()
    for handler in handlers:
        if handler not in root.handlers:
            root.addHandler(handler)
    root.setLevel(level)


def _restore_environment(before: dict[str, str]) -> None:
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
