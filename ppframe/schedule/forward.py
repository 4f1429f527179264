"""Forward-only schedules, for evaluation: any placement, any number of microbatches."""

from __future__ import annotations

from ppframe.errors import ConfigError
from ppframe.schedule.action import ActionKind, Compute
from ppframe.schedule.bulk import computes
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement
from ppframe.schedule.rows import Rows


def forward_only(like: Placement | Schedule, num_microbatches: int) -> Schedule:
    """The forwards of `num_microbatches` microbatches, with no backward.

    As many microbatches as there are ranks go through a rank's first chunk, then through its
    second, and so on; then come the next ones.

    ::

        rank 0  0F0 0F1 2F0 2F1 0F2 0F3 2F2 2F3
        rank 1      1F0 1F1 3F0 3F1 1F2 1F3 3F2 3F3

    Like a schedule of two chains, even microbatches take chain 0 and odd ones chain 1.

    ::

        rank 0  0F0 1F1 0F2 1F3
        rank 1  0F1 1F0 0F3 1F2

    Args:
        like: where the stages are.
        num_microbatches: 1 or more.

    Raises:
        ConfigError: there is no microbatch.

    Example:
        >>> forward_only(Placement.v(2), 1).actions
        ((0F0, 3F0), (1F0, 2F0))
    """
    placement = like.placement if isinstance(like, Schedule) else like
    _require_positive(num_microbatches)
    name = f"{like.name}-forward" if isinstance(like, Schedule) and like.name else "forward"
    if isinstance(like, Schedule) and like.chains:
        rows, chains = _both_ways(placement, num_microbatches), alternating(num_microbatches)
        return Schedule(rows, placement, name, forward_only=True, chains=chains)
    return Schedule(_one_way(placement, num_microbatches), placement, name, forward_only=True)


def alternating(num_microbatches: int) -> tuple[int, ...]:
    """Even microbatches on chain 0, odd ones on chain 1: both ends take data in its order.

    Example:
        >>> alternating(3)
        (0, 1, 0)
    """
    return tuple([microbatch % 2 for microbatch in range(num_microbatches)])


def _one_way(placement: Placement, num_microbatches: int) -> Rows:
    sweeps = _sweeps(placement)
    order = [
        (stage, first + offset)
        for first in range(0, num_microbatches, placement.ranks)
        for sweep in sweeps
        for offset in range(min(placement.ranks, num_microbatches - first))
        for stage in sweep
    ]
    rows: list[list[Compute]] = [[] for _ in range(placement.ranks)]
    for action in computes(ActionKind.F, order):
        rows[placement[action.stage]].append(action)
    return tuple(map(tuple, rows))


def _both_ways(placement: Placement, num_microbatches: int) -> Rows:
    """A pair of microbatches sets out every second moment, one from each end."""
    chains = placement.owners, placement.mirrored
    pairs = [(stage, m) for m in range(num_microbatches) for stage in range(placement.num_stages)]
    pairs.sort(key=lambda pair: pair[0] + pair[1] - pair[1] % 2)
    rows: list[list[Compute]] = [[] for _ in range(placement.ranks)]
    for action in computes(ActionKind.F, pairs):
        rows[chains[action.microbatch % 2][action.stage]].append(action)
    return tuple(map(tuple, rows))


def _require_positive(num_microbatches: int) -> None:
    if num_microbatches < 1:
        raise ConfigError(
            f"must be at least 1, but is {num_microbatches}.", path="num_microbatches"
        )


def _sweeps(placement: Placement) -> list[list[int]]:
    """The stages in runs that visit no rank twice."""
    sweeps: list[list[int]] = [[]]
    for stage, rank in enumerate(placement):
        if rank in {placement[other] for other in sweeps[-1]}:
            sweeps.append([])
        sweeps[-1].append(stage)
    return sweeps
