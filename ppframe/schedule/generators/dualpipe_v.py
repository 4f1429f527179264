"""DualPipeV: two stages of each rank in a V, forwards overlapped with backwards."""

from __future__ import annotations

from ppframe.schedule.action import Action
from ppframe.schedule.generators.dualpipe import Lane, two_lane_row
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_generator
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def _makespan(shape: Shape) -> int:
    return 6 * shape.microbatches + 2 * (shape.ranks - 1)


def _peak(shape: Shape) -> tuple[int, ...]:
    return (2 * shape.ranks + 1,) * shape.ranks


FACTS = ScheduleFacts(
    summary="two stages of each rank in a V; forwards overlap with backwards, to hide messages",
    placement="v",
    chunks_per_rank=2,
    min_chunks=2,
    max_chunks=2,
    takes_microbatches=lambda shape: shape.microbatches >= 2 * shape.ranks,
    makespan=_makespan,
    peak_in_flight=_peak,
    reference="DeepSeek-AI, DualPipe, 2025, github.com/deepseek-ai/DualPipe, DualPipeV; after "
    "DeepSeek-V3 Technical Report, 2024, arXiv 2412.19437, section 3.2.1",
)


@schedule_generator("dualpipe-v", FACTS)
def dualpipe_v(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
    """DualPipe folded in half: its two directions are the two chunks of a V.

    In the steady state a forward of one chunk runs overlapped with a backward of the other, so that
    the messages of one are hidden by the computation of the other. At both ends of the step
    backwards are split, and weight gradients fill what would be idle.

    ::

        rank 0  0F0  0F1  0F2  3F0  3B0  3W0  3F1  (0F3;3BW1)  (3F2;0BW0)  ...
        rank 1       1F0  2F0  1F1  2F1  1F2  2BW0 (2F2;1BW0)  (1F3;2BW1)  ...

    Args:
        ranks: pipeline ranks (P), any.
        microbatches: microbatches (M), at least 2 P.
        chunks_per_rank: 2.

    Facts:
        makespan 6 M + 2 (P - 1) in unit costs; 2 P + 1 in flight on every rank. The bubble is
        (P - 1) (FB + BW - 3 W), where FB is the time of an overlapped pair.

    Reference:
        DeepSeek-AI, DualPipe, 2025, github.com/deepseek-ai/DualPipe, DualPipeV; after DeepSeek-V3
        Technical Report, 2024, arXiv 2412.19437, section 3.2.1.

    Example:
        >>> dualpipe_v(1, 2).actions
        ((0F0, 1F0, 0F1, 1BW0, (1F1;0BW0), 1BW1, 0B1, 0W1),)
    """
    placement = Placement.v(ranks, chunks_per_rank)
    rows = (_row(rank, placement, microbatches) for rank in range(ranks))
    return Schedule(tuple(rows), placement, "dualpipe-v")


def _row(rank: int, placement: Placement, microbatches: int) -> tuple[Action, ...]:
    there, back = (Lane(stage, 0, 1) for stage in placement.stages_of(rank))
    to_turn = placement.ranks - 1 - rank
    steady = microbatches - 2 * placement.ranks + rank
    return two_lane_row(there, back, to_middle=to_turn, steady=steady)
