"""Microbatches: how a batch is cut along its samples."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, final

from torch import Tensor

from ppframe.errors import ConfigError
from ppframe.stage import boundary

_log = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class Split:
    """Rule for an argument: cut its tensors along `dim`, where they have the batch's size."""

    dim: int = 0


@final
@dataclass(frozen=True, slots=True)
class Replicate:
    """Rule for an argument: every microbatch gets the whole of it."""


Rule = Split | Replicate


def batch_size_of(inputs: Any) -> int:
    """Number of samples of a batch: the size on dim 0 of its first tensor that has one.

    Raises:
        ConfigError: there is no such tensor, or it is empty.
    """
    for tensor in boundary.tensors_of(inputs):
        if tensor.dim():
            if tensor.shape[0] == 0:
                raise ConfigError(
                    f"must hold at least one sample, but has shape {list(tensor.shape)}.",
                    path="inputs",
                )
            return tensor.shape[0]
    raise ConfigError("must hold a tensor with a batch dimension, but holds none.", path="inputs")


def sizes_by_limit(num_samples: int, microbatch_size: int) -> tuple[int, ...]:
    """Sizes of microbatches of `microbatch_size`, the last one smaller when that isn't whole.

    Example:
        >>> sizes_by_limit(10, 4)
        (4, 4, 2)
    """
    full, rest = divmod(num_samples, microbatch_size)
    return (microbatch_size,) * full + ((rest,) if rest else ())


def sizes_by_count(num_samples: int, num_microbatches: int) -> tuple[int, ...]:
    """Sizes of `num_microbatches` microbatches that differ by at most one, larger ones first.

    Raises:
        ConfigError: fewer samples than microbatches.

    Example:
        >>> sizes_by_count(10, 4)
        (3, 3, 2, 2)
    """
    if num_samples < num_microbatches:
        raise ConfigError(
            f"must hold at least one sample for each microbatch, but holds {num_samples} "
            f"(microbatches {num_microbatches}). Use larger batches or fewer microbatches.",
            path="inputs",
        )
    share, rest = divmod(num_samples, num_microbatches)
    return (share + 1,) * rest + (share,) * (num_microbatches - rest)


def split_batch(value: Any, sizes: tuple[int, ...], name: str) -> list[Any]:
    """Cut inputs or targets; every tensor with dimensions must have the batch's size on dim 0.

    Args:
        value: nested structure; tensors are cut on dim 0 (views, no copies), 0-dim tensors and
            other values go to every microbatch.
        sizes: samples of each microbatch.
        name: `inputs` or `targets`, for the error.

    Raises:
        ConfigError: a tensor of another size.
    """
    num_samples = sum(sizes)
    for tensor in boundary.tensors_of(value):
        if tensor.dim() and tensor.shape[0] != num_samples:
            raise ConfigError(
                f"every tensor must have the batch's size {num_samples} on dim 0, but one has "
                f"shape {list(tensor.shape)}. Pass what is not per sample as a keyword argument.",
                path=name,
            )
    return _cut(value, sizes, 0)


@final
class ArgumentSplitter:
    """Cuts the keyword arguments of a step by rule.

    Without a rule a tensor is cut when it has the batch's size on dim 0, and is replicated
    otherwise. That is a guess: a lookup table may have that size by chance. So the first cut
    without a rule is logged as a warning, once for each argument.

    Args:
        rules: rule for each argument that has one.
    """

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = dict(rules)
        self._announced: set[str] = set()

    def split(self, arguments: Mapping[str, Any], sizes: tuple[int, ...]) -> list[dict[str, Any]]:
        """The arguments of each microbatch.

        Raises:
            ConfigError: a tensor under a Split rule hasn't the batch's size on that dim.
        """
        columns = {name: self._split_one(name, value, sizes) for name, value in arguments.items()}
        return [
            {name: column[microbatch] for name, column in columns.items()}
            for microbatch in range(len(sizes))
        ]

    def _split_one(self, name: str, value: Any, sizes: tuple[int, ...]) -> list[Any]:
        rule = self._rules.get(name)
        if isinstance(rule, Replicate):
            return [value] * len(sizes)
        if rule is not None:
            self._require_size(name, value, rule.dim, sum(sizes))
            return _cut(value, sizes, rule.dim)
        self._announce(name, value, sizes)
        return _cut(value, sizes, 0)

    def _require_size(self, name: str, value: Any, dim: int, num_samples: int) -> None:
        for tensor in boundary.tensors_of(value):
            if tensor.dim() == 0:
                continue
            if not -tensor.dim() <= dim < tensor.dim() or tensor.shape[dim] != num_samples:
                raise ConfigError(
                    f"must have the batch's size {num_samples} on dim {dim}, as its rule says, "
                    f"but has shape {list(tensor.shape)}. Correct the rule or the tensor.",
                    path=f"argument_rules.{name}",
                )

    def _announce(self, name: str, value: Any, sizes: tuple[int, ...]) -> None:
        cut = [t for t in boundary.tensors_of(value) if t.dim() and t.shape[0] == sum(sizes)]
        if cut and len(sizes) > 1 and name not in self._announced:
            self._announced.add(name)
            _log.warning(
                "keyword argument `%s` of shape %s has the batch's size on dim 0 and is cut into "
                "microbatches; if it is not per sample, give argument_rules={'%s': Replicate()}, "
                "else {'%s': Split()}",
                name,
                list(cut[0].shape),
                name,
                name,
            )


def _cut(value: Any, sizes: tuple[int, ...], dim: int) -> list[Any]:
    """Cut each tensor that has the batch's size on `dim`; everything else goes to all."""
    num_samples = sum(sizes)
    if isinstance(value, Tensor):
        return _cut_tensor(value, sizes, dim, num_samples)
    leaves, structure = boundary.leaves_of(value)
    columns = [
        _cut_tensor(leaf, sizes, dim, num_samples)
        if isinstance(leaf, Tensor)
        else [leaf] * len(sizes)
        for leaf in leaves
    ]
    return [
        boundary.assemble([column[microbatch] for column in columns], structure)
        for microbatch in range(len(sizes))
    ]


def _cut_tensor(tensor: Tensor, sizes: tuple[int, ...], dim: int, num_samples: int) -> list[Tensor]:
    if not tensor.dim() or tensor.shape[dim] != num_samples:
        return [tensor] * len(sizes)
    starts = accumulate(sizes, initial=0)
    return [tensor.narrow(dim, start, size) for start, size in zip(starts, sizes, strict=False)]
