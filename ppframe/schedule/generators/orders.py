"""Orders that several generators share: depth first over groups, and one forward one backward."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from ppframe.schedule.action import Compute

Pairs = list[tuple[int, int]]
"""(stage, microbatch) pairs in the order of a rank."""


def group_sizes(ranks: int, microbatches: int) -> tuple[int, ...]:
    """Sizes of the groups that go through a rank's chunks together.

    There are max(1, M div P) groups, all of about P microbatches; where that number doesn't divide
    M, the first ones are larger by one.

    Example:
        >>> group_sizes(ranks=4, microbatches=8), group_sizes(ranks=4, microbatches=11)
        ((4, 4), (6, 5))
    """
    rounds = max(1, microbatches // ranks)
    size, larger = divmod(microbatches, rounds)
    return (size + 1,) * larger + (size,) * (rounds - larger)


def depth_first(stages: Sequence[int], sizes: Iterable[int]) -> Pairs:
    """Each group through the stages one after the other, then the next group.

    Example:
        >>> depth_first((0, 2), (2, 1))
        [(0, 0), (0, 1), (2, 0), (2, 1), (0, 2), (2, 2)]
    """
    order: Pairs = []
    first = 0
    for size in sizes:
        group = range(first, first + size)
        order.extend((stage, microbatch) for stage in stages for microbatch in group)
        first += size
    return order


def interleaved_warmup(rank: int, ranks: int, chunks_per_rank: int, sizes: Sequence[int]) -> int:
    """Forwards before the first backward of a rank, for a depth-first order.

    A first group goes through all chunks but the last; two more for each hop to the last rank.
    """
    total = chunks_per_rank * sum(sizes)
    return min(total, (chunks_per_rank - 1) * sizes[0] + 2 * (ranks - 1 - rank))


def one_forward_one_backward(
    forwards: Sequence[Compute], backwards: Sequence[Compute], warmup: int
) -> tuple[Compute, ...]:
    """`warmup` forwards, then a forward and a backward in turn, then the rest of the backwards."""
    steady = len(forwards) - warmup
    pairs = zip(forwards[warmup:], backwards[:steady], strict=True)
    return (*forwards[:warmup], *chain.from_iterable(pairs), *backwards[steady:])
