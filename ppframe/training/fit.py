"""Whether data, modules and loss fit each other, found out before anything is trained.

A real microbatch goes through the modules as tensors without memory, which have a shape and a type
alone. Numbers count in two places only, and there the real ones are looked at: those that index an
embedding, and the targets, which the loss gets together with zeros of the output's shape.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

import ppframe
from ppframe.data import Batch
from ppframe.errors import ConfigError, Fault
from ppframe.stage.batch_loss import LossFunction
from ppframe.stage.boundary import map_tensors, tensors_of

_MAX_OUTPUT = 1 << 24  # elements that the loss is tried on
_NOT_THE_USERS = tuple(str(Path(package.__file__ or "").parent) for package in (torch, ppframe))


@final
@dataclass(frozen=True, slots=True)
class Fitted:
    """What is to fit.

    Args:
        modules: in forward order, without memory.
        names: what a fault calls each of them.
        batch: a real microbatch.
        loss: of the output and the targets.
    """

    modules: Sequence[nn.Module]
    names: Sequence[str]
    batch: Batch
    loss: LossFunction


def misfit(fitted: Fitted) -> list[Fault]:
    """The first thing that doesn't fit.

    Returns:
        its faults; none where everything fits, or where an operation needs real numbers, or a
        device, and it can't be told.
    """
    inputs = fitted.batch.inputs
    value: Any = map_tensors(lambda tensor: tensor.to("meta"), inputs)
    pairs = zip(tensors_of(value), tensors_of(inputs), strict=True)
    known = {id(meta): real for meta, real in pairs}
    given = "what the data gives"
    for name, module in zip(fitted.names, fitted.modules, strict=True):
        try:
            with torch.no_grad(), torch.device("meta"), _indices_checked(module, known):
                value = module(*value) if isinstance(value, tuple) else module(value)
        except (Exception, SystemExit) as error:  # modules may be the user's
            return _told(error, name, f"take {given}, {_shapes(value)}")
        given = f"what {name} gives"
    try:
        with warnings.catch_warnings(action="ignore"):  # the run itself will warn of what matters
            _try_loss(fitted, value)
    except (Exception, SystemExit) as error:  # so may losses
        targets = _shapes(fitted.batch.targets)
        return _told(error, "loss", f"take {given}, {_shapes(value)}, and targets, {targets}")
    return []


def _try_loss(fitted: Fitted, value: Any) -> None:
    """Call the loss: with real targets, unless the output is too large to make up."""
    if sum(tensor.numel() for tensor in tensors_of(value)) > _MAX_OUTPUT:
        targets = map_tensors(lambda tensor: tensor.to("meta"), fitted.batch.targets)
        with torch.no_grad(), torch.device("meta"):
            fitted.loss(value, targets)
        return
    output = map_tensors(lambda tensor: torch.zeros_like(tensor, device="cpu"), value)
    with torch.no_grad():
        fitted.loss(output, fitted.batch.targets)


@final
class _OutOfRange(Exception):
    """A number of the data that an embedding has no entry for."""


@contextmanager
def _indices_checked(module: nn.Module, known: Mapping[int, Tensor]) -> Iterator[None]:
    """Embeddings in a module look at the real numbers that they get from the data."""
    look = partial(_look_at_indices, known)
    embeddings = [inner for inner in module.modules() if isinstance(inner, nn.Embedding)]
    hooks = [embedding.register_forward_pre_hook(look) for embedding in embeddings]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _look_at_indices(known: Mapping[int, Tensor], module: nn.Module, given: Any) -> None:
    assert isinstance(module, nn.Embedding)
    indices = known.get(id(given[0])) if given else None
    if indices is None or not indices.numel():
        return
    least, most = int(indices.min()), int(indices.max())
    if least < 0 or most >= module.num_embeddings:
        raise _OutOfRange(
            f"must embed the numbers {least} to {most}, which the data has, but has "
            f"{module.num_embeddings} vectors, for 0 to {module.num_embeddings - 1}. Give it more "
            "(`vocab_size`, `num_embeddings`), or other data."
        )


def _told(error: BaseException, name: str, duty: str) -> list[Fault]:
    """The faults that an error stands for; none where it only says that numbers are needed."""
    if isinstance(error, _OutOfRange):
        return [Fault(name, str(error))]
    if isinstance(error, ConfigError) and error.path:
        return list(error.faults)
    if isinstance(error, NotImplementedError) or _is_about_devices(str(error)):
        return []
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    reason = f"{type(error).__name__}: {error}".rstrip(".")
    return [Fault(name, f"must {duty}, but raised {reason}{where}.")]


def _is_about_devices(text: str) -> bool:
    return any(word in text.lower() for word in ("meta", "cuda"))


def _shapes(value: Any) -> str:
    """Types and shapes of tensors; of real whole numbers their range too."""
    return "; ".join(map(_shape, tensors_of(value))) or f"a {type(value).__name__}"


def _shape(tensor: Tensor) -> str:
    text = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
    if tensor.is_meta or tensor.is_floating_point() or not tensor.numel():
        return text
    return f"{text} from {int(tensor.min())} to {int(tensor.max())}"
