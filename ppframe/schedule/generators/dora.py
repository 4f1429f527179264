"""dora: depth first, with weight gradients held back to fill the end of the step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ppframe.schedule.action import ActionKind
from ppframe.schedule.bulk import computes
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.orders import (
    Pairs,
    depth_first,
    group_sizes,
    interleaved_warmup,
)
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _num_held(rank: int, ranks: int, microbatches: int) -> int:
    """How many weight gradients wait for the end of the step."""
    return rank if microbatches == ranks else 2 * rank


def _num_ahead(rank: int, ranks: int) -> int:
    """How many backwards of the cool-down run before the steady state comes to the second chunk."""
    return max(0, (ranks - 3) // 2 - rank)


def _makespan(shape: Shape) -> int | None:
    """A closed form is known for groups of P microbatches."""
    ranks, chunks, microbatches = shape
    if microbatches % ranks:
        return None
    return 3 * microbatches * chunks + (2 if microbatches == ranks else 1) * (ranks - 1)


def _peak(shape: Shape) -> tuple[int, ...]:
    return tuple(_peak_of(rank, shape) for rank in range(shape.ranks))


def _peak_of(rank: int, shape: Shape) -> int:
    """The warm-up, what is held back, and one; less what was taken ahead before that."""
    ranks, chunks, microbatches = shape
    sizes = group_sizes(ranks, microbatches)
    warmup = interleaved_warmup(rank, ranks, chunks, sizes)
    most = min(_num_held(rank, ranks, microbatches) + 1, chunks * microbatches - warmup)
    ahead = _num_ahead(rank, ranks) if chunks > 1 else 0
    before = _steady_before_second_chunk(sizes, chunks, warmup)
    if not ahead or before is None or before >= most:
        return warmup + most
    return warmup + max(before, most - ahead)


def _steady_before_second_chunk(sizes: Sequence[int], chunks: int, warmup: int) -> int | None:
    """Forwards of the steady state before its first one of the second chunk; None: it has none."""
    for end, size in zip(accumulate(sizes), sizes, strict=True):
        start = (end - size) * chunks
        first = max(warmup, start + size)
        if first < start + 2 * size:
            return first - warmup
    return None


FACTS = ScheduleFacts(
    summary="depth first, with weight gradients held back to fill the end of the step",
    placement="loop",
    chunks_per_rank=2,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="torchmonarch, parallel/pipelining, 2025, where it is written but not enabled",
)


@schedule_generator("dora", FACTS)
def dora(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """The order of `dora-dfs`, with some weight gradients at the very end.

    Rank r holds back the first 2 r weight gradients of its steady state (r where M = P), so its
    input gradients leave sooner, and it has work left while the others drain. The first ranks also
    take some backwards of the cool-down ahead. A backward whose two parts stay together runs as
    one.

    ::

        rank 0  0F0 0F1 2F0 2F1 0F2  2BW0 0F3  2BW1 2F2  0BW0 ...  0BW3
        rank 1      1F0 1F1 3F0 3B0  3F1  3B1  1F2  1BW0 1F3  ...  1BW3 3W0  3W1

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), any.
        chunks_per_rank: stages of each rank (V), any.

    Facts:
        makespan in unit costs 3 M V + P - 1 where P divides M > P, 3 M V + 2 (P - 1) where M = P;
        in flight as `dora-dfs`, and what is held back.

    Reference:
        torchmonarch, parallel/pipelining, 2025, where it is written but not enabled.

    Example:
        >>> dora(2, 2, 1).actions
        ((0F0, 0F1, 0BW0, 0BW1), (1F0, 1B0, 1F1, 1BW1, 1W0))
    """
    placement = Placement.loop(ranks, chunks_per_rank)
    rows = []
    for rank in range(ranks):
        steps = _steps(rank, placement, microbatches)
        rows.append(tuple(action for kind, pairs in steps for action in computes(kind, pairs)))
    return Schedule(tuple(rows), placement, "dora")


def _steps(rank: int, placement: Placement, microbatches: int) -> list[tuple[ActionKind, Pairs]]:
    """Runs of one kind, in the order of a rank."""
    ranks, stages = placement.ranks, placement.stages_of(rank)
    sizes = group_sizes(ranks, microbatches)
    forwards, backwards = depth_first(stages, sizes), depth_first(stages[::-1], sizes)
    warmup = interleaved_warmup(rank, ranks, len(stages), sizes)
    held = _num_held(rank, ranks, microbatches)
    ahead = min(_num_ahead(rank, ranks), warmup)
    steps = [(ActionKind.F, forwards[:warmup])]
    late: Pairs = []
    done = 0
    for index, forward in enumerate(forwards[warmup:]):
        if ahead and forward[0] in stages[1:2]:
            steps.append((ActionKind.BW, backwards[done : done + ahead]))
            done, ahead = done + ahead, 0
        is_held = index < held
        kind = ActionKind.B if is_held else ActionKind.BW
        steps += [(ActionKind.F, [forward]), (kind, [backwards[done]])]
        late += [backwards[done]] if is_held else []
        done += 1
    return [*steps, (ActionKind.BW, backwards[done:]), (ActionKind.W, late)]
