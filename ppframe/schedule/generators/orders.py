"""Orders that several generators share: depth first over groups, one forward one backward."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from ppframe.schedule.action import Action, ActionKind, Compute, Overlap
from ppframe.schedule.bulk import computes
from ppframe.schedule.placement import Placement

AnyAction = TypeVar("AnyAction", bound=Action)

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


def interleaved_warmup(
    rank: int, ranks: int, chunks_per_rank: int, sizes: Sequence[int], *, per_hop: int = 2
) -> int:
    """Forwards before the first backward of a rank, for a depth-first order.

    A first group goes through all chunks but the last; `per_hop` more for each hop to the last
    rank: two where a backward takes as long as two forwards, one where it is split.
    """
    total = chunks_per_rank * sum(sizes)
    return min(total, (chunks_per_rank - 1) * sizes[0] + per_hop * (ranks - 1 - rank))


def one_forward_one_backward(
    forwards: Sequence[Compute], backwards: Sequence[Compute], warmup: int
) -> tuple[Compute, ...]:
    """`warmup` forwards, then a forward and a backward in turn, then the rest of the backwards."""
    steady = len(forwards) - warmup
    pairs = zip(forwards[warmup:], backwards[:steady], strict=True)
    return (*forwards[:warmup], *chain.from_iterable(pairs), *backwards[steady:])


def one_forward_one_split_backward(
    forwards: Sequence[Compute], backwards: Pairs, warmup: int, held: int
) -> tuple[Compute, ...]:
    """`warmup` forwards, then F, B and W in turn, with W lagging `held` backwards behind.

    Example:
        >>> pairs = [(0, 0), (0, 1), (0, 2)]
        >>> one_forward_one_split_backward(computes(ActionKind.F, pairs), pairs, 1, 2)
        (0F0, 0F1, 0B0, 0F2, 0B1, 0B2, 0W0, 0W1, 0W2)
    """
    weights = computes(ActionKind.W, backwards)
    row = list(forwards[:warmup])
    for done, backward in enumerate(computes(ActionKind.B, backwards)):
        row += forwards[warmup + done : warmup + done + 1]
        row.append(backward)
        if done >= held:
            row.append(weights[done - held])
    return (*row, *weights[max(0, len(backwards) - held) :])


def split_depth_first(
    placement: Placement, sizes: Sequence[int], held: Sequence[int]
) -> tuple[tuple[Compute, ...], ...]:
    """For each rank the depth-first order with a split backward and a forward per hop to warm up.

    Args:
        placement: a loop.
        sizes: microbatches of each group.
        held: for each rank how many backwards its weight gradients lag behind.
    """
    ranks, rows = placement.ranks, []
    for rank in range(ranks):
        stages = placement.stages_of(rank)
        forwards = computes(ActionKind.F, depth_first(stages, sizes))
        warmup = interleaved_warmup(rank, ranks, len(stages), sizes, per_hop=1)
        backwards = depth_first(stages[::-1], sizes)
        rows.append(one_forward_one_split_backward(forwards, backwards, warmup, held[rank]))
    return tuple(rows)


def wait_of_small_groups(ranks: int, chunks_per_rank: int, size: int) -> int:
    """Unit times that a rank waits for groups of less than P to come round, in `split_depth_first`.

    A first group of g comes to each next chunk P - g forwards too late. Backwards, of which only
    every second slot is one, have come too late by P - 2 g.
    """
    return (chunks_per_rank - 1) * (max(0, ranks - size) + max(0, ranks - 2 * size))


def counted(kind: ActionKind, stage: int, microbatches: Iterator[int]) -> Iterator[Compute]:
    """A source of computations of this kind; sources that share a counter go on from each other."""
    return (tuple.__new__(Compute, (stage, kind, microbatch)) for microbatch in microbatches)


def counted_split(
    stage: int, microbatches: Iterator[int], pending: deque[Compute]
) -> Iterator[Compute]:
    """A source of B; the W of each that was drawn stands at the end of `pending`."""
    for microbatch in microbatches:
        pending.append(Compute(stage, ActionKind.W, microbatch))
        yield Compute(stage, ActionKind.B, microbatch)


def paired(first: Iterator[Compute], second: Iterator[Compute]) -> Iterator[Action]:
    """A source of overlaps of what two sources give; the two may be the same."""
    return map(Overlap, first, second)


def popped(pending: deque[Compute]) -> Iterator[Compute]:
    """A source of what is pending, oldest first."""
    while True:
        yield pending.popleft()


def draw(order: Iterable[Iterator[AnyAction]]) -> tuple[AnyAction, ...]:
    """The next action of each source, in this order.

    Example:
        >>> from itertools import count
        >>> forwards = counted(ActionKind.F, 0, count())
        >>> backwards = counted(ActionKind.BW, 0, count())
        >>> draw([forwards] * 2 + [backwards, forwards] * 2)
        (0F0, 0F1, 0BW0, 0F2, 0BW1, 0F3)
    """
    return tuple(map(next, order))
