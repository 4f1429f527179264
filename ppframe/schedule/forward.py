"""Forward-only schedules, for evaluation: any placement, any number of microbatches."""

from __future__ import annotations

from ppframe.schedule.action import ActionKind, Compute
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement


def forward_only(like: Placement | Schedule, num_microbatches: int) -> Schedule:
    """The forwards of `num_microbatches` microbatches, with no backward.

    As many microbatches as there are ranks go through a rank's first chunk, then through its
    second, and so on; then come the next ones.

    ::

        rank 0  0F0 0F1 2F0 2F1 0F2 0F3 2F2 2F3
        rank 1      1F0 1F1 3F0 3F1 1F2 1F3 3F2 3F3

    Args:
        like: where the stages are.
        num_microbatches: 1 or more.

    Example:
        >>> forward_only(Placement.v(2), 1).actions
        ((0F0, 3F0), (1F0, 2F0))
    """
    placement = like.placement if isinstance(like, Schedule) else like
    sweeps = _sweeps(placement)
    rows: list[list[Compute]] = [[] for _ in range(placement.ranks)]
    for first in range(0, num_microbatches, placement.ranks):
        group = range(first, min(first + placement.ranks, num_microbatches))
        for sweep in sweeps:
            for microbatch in group:
                for stage in sweep:
                    rows[placement[stage]].append(Compute(stage, ActionKind.F, microbatch))
    name = f"{like.name}-forward" if isinstance(like, Schedule) and like.name else "forward"
    return Schedule(tuple(map(tuple, rows)), placement, name, forward_only=True)


def _sweeps(placement: Placement) -> list[list[int]]:
    """The stages in runs that visit no rank twice."""
    sweeps: list[list[int]] = [[]]
    for stage, rank in enumerate(placement):
        if rank in {placement[other] for other in sweeps[-1]}:
            sweeps.append([])
        sweeps[-1].append(stage)
    return sweeps
