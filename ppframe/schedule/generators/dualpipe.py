"""DualPipe: two chains through the ranks, which overlap their forwards and backwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple, final

from ppframe.schedule.action import Action, ActionKind, Compute
from ppframe.schedule.forward import alternating
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.generators.orders import counted, counted_split, draw, paired, popped
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int:
    return 3 * shape.microbatches + shape.ranks - 2


def _peak(shape: Shape) -> tuple[int, ...]:
    return (shape.ranks + 1,) * shape.ranks


FACTS = ScheduleFacts(
    summary="two chains through the ranks in opposite directions; forwards of one overlap with "
    "backwards of the other, to hide messages; the model is there twice",
    placement="bidirectional",
    max_chunks=1,
    takes_ranks=lambda ranks: ranks % 2 == 0,
    takes_microbatches=lambda shape: (
        shape.microbatches % 2 == 0 and shape.microbatches >= 2 * shape.ranks
    ),
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, arXiv 2412.19437, section 3.2.1; "
    "github.com/deepseek-ai/DualPipe",
)


@schedule_generator("dualpipe", FACTS)
def dualpipe(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
    """Even microbatches go down the ranks, odd ones up, each in a hurry until the two meet.

    In the steady state a forward of one chain runs overlapped with a backward of the other, so that
    the messages of one are hidden by the computation of the other. At both ends of the step
    backwards are split, and weight gradients fill what would be idle.

    ::

        rank 0  0F0 0F2 0F4 3F1 3B1 3W1 3F3  (0F6;3BW3) (3F5;0BW0) 3BW5 (3F7;0BW2) 3BW7 0B4 0W4 ...
        rank 1      1F0 2F1 1F2 2F3 1F4 2BW1 (2F5;1BW0) (1F6;2BW3) (2F7;1BW2) 2BW5 1BW4 2B7 1B6 ...
        rank 2      1F1 2F0 1F3 2F2 1F5 2BW0 (2F4;1BW1) (1F7;2BW2) (2F6;1BW3) 2BW4 1BW5 2B6 1B7 ...
        rank 3  0F1 0F3 0F5 3F0 3B0 3W0 3F2  (0F7;3BW2) (3F4;0BW1) 3BW4 (3F6;0BW3) 3BW6 0B5 0W5 ...

    Args:
        ranks: pipeline ranks (P), even.
        microbatches: microbatches (M), even, at least 2 P.
        chunks_per_rank: 1; a rank holds that stage of either chain.

    Facts:
        makespan 3 M + P - 2 in unit costs; P + 1 in flight on every rank. Where F and B take the
        same time and W no more, the bubble of every rank is (P / 2 - 1) (FB + BW - 3 W), with FB
        for an overlapped pair.

    Reference:
        DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, arXiv 2412.19437, section 3.2.1, and
        github.com/deepseek-ai/DualPipe. Its chains take one half of the microbatches each; here
        they take turns, so that data is used in its order.

    Example:
        >>> dualpipe(2, 4).actions[0]
        (0F0, 1F1, 0F2, 1BW1, (1F3;0BW0), 1BW3, 0B2, 0W2)
    """
    rows = tuple(_row(rank, ranks, microbatches) for rank in range(ranks))
    placement = Placement.loop(ranks, chunks_per_rank)
    return Schedule(rows, placement, "dualpipe", chains=alternating(microbatches))


def _row(rank: int, ranks: int, microbatches: int) -> tuple[Action, ...]:
    """The order of a rank; the near lane is the chain that begins at the nearer end."""
    to_end = min(rank, ranks - 1 - rank)
    chain = 0 if rank == to_end else 1
    near, far = Lane(to_end, chain, 2), Lane(ranks - 1 - to_end, 1 - chain, 2)
    to_middle = ranks // 2 - 1 - to_end
    return two_lane_row(near, far, to_middle=to_middle, steady=microbatches // 2 - ranks + to_end)


@final
class Lane(NamedTuple):
    """A stage of a rank and the microbatches that it runs: every `step`-th from `first`."""

    stage: int
    first: int
    step: int

    def numbers(self) -> Iterator[int]:
        """The microbatches, without end."""
        return count(self.first, self.step)


def two_lane_row(near: Lane, far: Lane, *, to_middle: int, steady: int) -> tuple[Action, ...]:
    """The order of a rank that runs two stages, of which forwards and backwards overlap.

    Args:
        near: the lane that begins nearer to this rank; its stage is the number of ranks before it.
        far: the other one, which runs the other way.
        to_middle: ranks from here to where the two lanes turn or meet.
        steady: rounds of the steady state, less one.
    """
    f0, f1 = (counted(ActionKind.F, lane.stage, lane.numbers()) for lane in (near, far))
    done0, done1, pending = near.numbers(), far.numbers(), deque[Compute]()
    bw0, bw1 = counted(ActionKind.BW, near.stage, done0), counted(ActionKind.BW, far.stage, done1)
    b0, b1 = counted_split(near.stage, done0, pending), counted_split(far.stage, done1, pending)
    w, from_end = popped(pending), near.stage + 1
    f0_bw1, f1_bw0 = paired(f0, bw1), paired(f1, bw0)
    main: list[Iterator[Action]] = [f0_bw1, f1_bw0] * (steady + 1)
    if to_middle == 0:
        main[:1] = [f0, bw1]  # the first backward of all ranks is done sooner alone
    turn = [bw1, bw0] * from_end
    turn[from_end:] = ([b1, b0] * from_end)[from_end:]
    return draw(
        [
            *[f0] * (2 * to_middle),
            *[f0, f1] * from_end,
            *[b1, w, f1] * to_middle,
            *main,
            *[bw1, f1_bw0] * to_middle,
            *turn,
            *[w, b0] * to_middle,
            *[w] * from_end,
        ]
    )
