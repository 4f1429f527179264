"""Checkpoints: the whole model under the unsplit model's names, in one file."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ppframe.errors import CheckpointError
from ppframe.training.files import write_whole

if TYPE_CHECKING:
    from ppframe.runtime import Pipeline

_LOG = logging.getLogger(__name__)

FINAL = Path("checkpoints", "final.pt")
_MAX_MISFITS = 3


def save_model(pipeline: Pipeline, path: Path) -> None:
    """Write parameters and buffers of the whole model.

    `torch.load(path)` gives a dict of tensors on the CPU that fits
    `nn.Sequential(*modules).load_state_dict`. The file is whole or absent. Where ranks are
    processes all of them call this, and the first one writes.

    Raises:
        CheckpointError: the file can't be written.
    """
    state = _on_cpu(pipeline.state_dict())
    if pipeline.peers.rank != 0:
        return
    try:
        write_whole(path, lambda file: torch.save(state, file))
    except (OSError, RuntimeError) as error:
        raise CheckpointError(
            f"checkpoint `{path}` must be writable, but writing it gave: {error}. "
            f"Free space, or set checkpoint.final=false.",
            path=path,
        ) from error


def load_model(pipeline: Pipeline, path: Path) -> None:
    """Read what `save_model` wrote into a pipeline of any number of ranks and stages.

    Tensors of another precision are converted, which is logged.

    Raises:
        CheckpointError: no such file, not a checkpoint, or of another model.
    """
    state = _read(path)
    _compare_types(pipeline.state_dict(), state, path)
    try:
        with warnings.catch_warnings():
            # Modules without memory, as `mode=check` has them, take names and shapes alone.
            warnings.filterwarnings("ignore", ".*copying from a non-meta parameter.*")
            pipeline.load_state_dict(state)
    except CheckpointError as error:
        misfits = [line.strip() for line in str(error).splitlines()[1:]] or [str(error)]
        raise _of_another_model(path, misfits) from error


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "is none" if path.exists() else "there is none"
        raise CheckpointError(
            f"checkpoint `{path}` must be a file, but {found}. "
            f"A finished run has it under {FINAL}.",
            path=path,
        )
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(
            f"checkpoint `{path}` must be a file that torch.load reads safely, but "
            f"{_why_unreadable(path, error)}. It is damaged, or not a checkpoint.",
            path=path,
        ) from error
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise CheckpointError(
            f"checkpoint `{path}` must hold tensors by name, but holds a {type(state).__name__}.",
            path=path,
        )
    return state


def _why_unreadable(path: Path, error: Exception) -> str:
    """What keeps torch from reading a file, in its words where they help."""
    head = b"PK"
    if not isinstance(error, OSError):
        with path.open("rb") as file:
            head = file.read(16)
    if not head.startswith((b"PK", b"\x80")):
        return f"it begins with {head!r}, as no file of torch.save does"
    # What torch says beyond its first sentence is advice to read the file unsafely.
    reason = str(error).partition(". ")[0].strip()
    return f"reading it raised {type(error).__name__}: {reason}"


def _compare_types(own: Mapping[str, Any], state: Mapping[str, Any], path: Path) -> None:
    """Refuse numbers of another kind, such as whole ones, and tell of another precision."""
    converted, refused = [], []
    for name, value in state.items():
        mine = own.get(name)
        if not isinstance(mine, Tensor) or not isinstance(value, Tensor):
            continue
        types = f"{name} is {value.dtype} and must be {mine.dtype}."
        if mine.is_floating_point() != value.is_floating_point():
            refused.append(types)
        elif mine.dtype != value.dtype:
            converted.append(types)
    if refused:
        raise _of_another_model(path, refused)
    if converted:
        _LOG.warning(
            "checkpoint %s: %d tensors are converted, the first as %s",
            path,
            len(converted),
            converted[0],
        )


def _of_another_model(path: Path, misfits: Sequence[str]) -> CheckpointError:
    more = len(misfits) - _MAX_MISFITS
    return CheckpointError(
        f"checkpoint `{path}` must be of this model, but {' '.join(misfits[:_MAX_MISFITS])}"
        f"{f' And {more} more.' if more > 0 else ''} Configure the model as in `config.yaml` "
        "of the run that wrote it.",
        path=path,
    )


def _on_cpu(state: Mapping[str, Any]) -> dict[str, Any]:
    """Copies on the CPU; entries that share their memory go on sharing it."""
    moved: dict[object, Tensor] = {}
    result: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, Tensor):
            key = (value.device, value.data_ptr(), value.dtype, value.shape, value.stride())
            value = moved.setdefault(key, value.detach().cpu())
        result[name] = value
    return result
