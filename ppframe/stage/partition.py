"""Partition: which modules make which stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import nn

from ppframe.errors import PartitionError

Partition = Literal["even", "parameters"] | Sequence[int]


def partition_modules(
    modules: Sequence[nn.Module], num_stages: int, partition: Partition = "even"
) -> tuple[range, ...]:
    """Contiguous runs of modules, one for each stage.

    Args:
        modules: the modules in forward order.
        num_stages: how many stages to make, at least 1.
        partition: `even` gives counts that differ by at most one, larger ones first; `parameters`
            makes the largest stage, counted in parameters, as small as can be; a sequence gives
            the number of modules of each stage.

    Returns:
        the indices of each stage's modules.

    Raises:
        PartitionError: fewer modules than stages, or counts that don't fit.
    """
    if len(modules) < num_stages:
        raise PartitionError(
            f"the number of modules must be at least the number of stages, but is {len(modules)} "
            f"(stages {num_stages}). Use fewer ranks or fewer chunks per rank, or cut the model "
            "into more modules."
        )
    counts = _counts(modules, num_stages, partition)
    starts = [sum(counts[:stage]) for stage in range(num_stages)]
    return tuple(range(start, start + count) for start, count in zip(starts, counts, strict=True))


def _counts(modules: Sequence[nn.Module], num_stages: int, partition: Partition) -> list[int]:
    if partition == "even":
        share, rest = divmod(len(modules), num_stages)
        return [share + (stage < rest) for stage in range(num_stages)]
    if partition == "parameters":
        sizes = [sum(p.numel() for p in module.parameters()) for module in modules]
        return smallest_maximum(sizes, num_stages)
    if isinstance(partition, str):
        raise PartitionError(
            f"partition must be `even`, `parameters` or a list of counts, but is `{partition}`."
        )
    counts = list(partition)
    if len(counts) != num_stages or sum(counts) != len(modules) or min(counts) < 1:
        raise PartitionError(
            f"partition must be {num_stages} positive counts with sum {len(modules)}, but is "
            f"{counts} (sum {sum(counts)}). Give one count for each stage."
        )
    return counts


def smallest_maximum(sizes: Sequence[int], num_parts: int) -> list[int]:
    """Lengths of contiguous parts, none empty, whose largest sum is as small as can be.

    Args:
        sizes: size of each item, not negative.
        num_parts: number of parts, at most the number of items.

    Returns:
        number of items of each part; of several best answers the one that fills early parts.
    """
    low, high = max(sizes), sum(sizes)
    while low < high:
        middle = (low + high) // 2
        if len(_filled(sizes, middle, num_parts)) <= num_parts:
            high = middle
        else:
            low = middle + 1
    return _filled(sizes, low, num_parts)


def _filled(sizes: Sequence[int], limit: int, num_parts: int) -> list[int]:
    """Fill parts up to `limit` one after the other, keeping an item for each part to come."""
    counts, total = [0], 0
    for index, size in enumerate(sizes):
        parts_to_come = num_parts - len(counts)
        must_close = counts[-1] > 0 and len(sizes) - index <= parts_to_come
        if counts[-1] and (total + size > limit or must_close):
            counts.append(0)
            total = 0
        counts[-1] += 1
        total += size
    return counts
