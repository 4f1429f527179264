"""Walks: a schedule run on paper, to find its times, its order, or that it never ends.

Each rank takes its actions in order and waits where one is not ready. Whatever the speed of the
ranks, such a run comes to the same end, so one walk proves a schedule for all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, final

from ppframe.schedule.action import OTHER_END, Action, ActionKind, Compute, Exchange, Transfer
from ppframe.schedule.ir import LoweredSchedule, Schedule
from ppframe.schedule.slots import Slots

UNIT_TIMES: Final = {ActionKind.F: 1, ActionKind.B: 1, ActionKind.W: 1, ActionKind.BW: 2}
"""Durations in the unit costs of the papers, where forward and both backward parts are equal."""


@final
class Wait(NamedTuple):
    """A rank that can't go on.

    Args:
        rank: the rank.
        step: index in its list of the action that waits.
        action: that action.
        missing: actions of which one must run first.
        on: rank that has to run it.
    """

    rank: int
    step: int
    action: Action
    missing: tuple[Action, ...]
    on: int


@final
class ComputeWalk(NamedTuple):
    """A compute-only schedule in unit costs, without latency.

    Args:
        starts: for each rank the start of each action.
        ends: for each rank the end of each action.
        waits: ranks that did not come to their end; empty for a legal schedule.
    """

    starts: list[list[int]]
    ends: list[list[int]]
    waits: tuple[Wait, ...]


def walk_compute(schedule: Schedule) -> ComputeWalk:
    """Run a compute-only schedule as soon as its dependencies allow."""
    slots = Slots(schedule.num_stages, schedule.num_microbatches)
    needed, left = slots.needed_by, slots.left_by
    finish = [0] * slots.count
    starts: list[list[int]] = [[] for _ in schedule.actions]
    ends: list[list[int]] = [[] for _ in schedule.actions]
    waiting: dict[int, list[int]] = {}
    ready = deque(range(schedule.ranks))
    while ready:
        rank = ready.popleft()
        row, row_starts, row_ends = schedule.actions[rank], starts[rank], ends[rank]
        clock = row_ends[-1] if row_ends else 0
        for action in row[len(row_ends) :]:
            singles = singles_of(action)
            slots_needed = [b + m for s, kind, m in singles for b in needed[kind][s]]
            times = [finish[slot] for slot in slots_needed]
            if 0 in times:
                waiting.setdefault(slots_needed[times.index(0)], []).append(rank)
                break
            start = max(clock, *times) if times else clock
            clock = start + sum([UNIT_TIMES[kind] for _, kind, _ in singles])
            row_starts.append(start)
            row_ends.append(clock)
            for stage, kind, microbatch in singles:
                for base in left[kind][stage]:
                    finish[base + microbatch] = clock
                    if base + microbatch in waiting:
                        ready.extend(waiting.pop(base + microbatch))
    return ComputeWalk(starts, ends, tuple(_compute_waits(schedule, slots, waiting, ends)))


@final
class LoweredWalk(NamedTuple):
    """A lowered schedule run by rendezvous: a send and its receive happen together.

    Args:
        order: (rank, step) of every action in an order in which one controller can run them; the
            two ends of a message stand next to each other, the send first.
        waits: ranks that did not come to their end; empty for a legal schedule.
    """

    order: list[tuple[int, int]]
    waits: tuple[Wait, ...]


def walk_lowered(schedule: LoweredSchedule) -> LoweredWalk:
    """Run a lowered schedule with blocking sends; ranks take turns, one computation each.

    What a rank needs of itself must stand before it in its list; the walk looks at messages only.
    """
    actions = schedule.actions
    heads = [0] * schedule.ranks
    lengths = [len(row) for row in actions]
    order: list[tuple[int, int]] = []
    ready = deque(range(schedule.ranks))
    while ready:
        rank = ready.popleft()
        while heads[rank] < lengths[rank]:
            step = heads[rank]
            action = actions[rank][step]
            if not isinstance(action, Transfer | Exchange):
                order.append((rank, step))
                heads[rank] += 1
                ready.append(rank)
                break
            peer = peer_of(schedule, action)
            there = heads[peer]
            if there == lengths[peer] or actions[peer][there] != mate_of(action):
                break
            pair = ((rank, step), (peer, there))
            sends = isinstance(action, Exchange) or action.is_send
            order.extend(pair if sends else pair[::-1])
            heads[rank] += 1
            heads[peer] += 1
            ready.append(peer)
    return LoweredWalk(order, tuple(_lowered_waits(schedule, heads)))


def singles_of(action: Action) -> Iterable[tuple[int, ActionKind, int]]:
    """Stage, kind and microbatch of a computation, or of both of a pair."""
    return (action,) if type(action) is Compute else action  # type: ignore[return-value]


def mate_of(action: Transfer | Exchange) -> Transfer | Exchange:
    """What the other rank runs at the same time."""
    return action.mirror if isinstance(action, Exchange) else action.other_end


def peer_of(schedule: LoweredSchedule, action: Transfer | Exchange) -> int:
    """The rank at the other end."""
    single = action.send if isinstance(action, Exchange) else action
    return schedule.rank_of(single.stage + OTHER_END[single.kind][1], single.microbatch)


def _compute_waits(
    schedule: Schedule, slots: Slots, waiting: dict[int, list[int]], ends: list[list[int]]
) -> Iterable[Wait]:
    for slot, ranks in waiting.items():
        need, microbatch = slots.meaning(slot)
        on = schedule.rank_of(need.stage, microbatch)
        for rank in ranks:
            step = len(ends[rank])
            action = schedule.actions[rank][step]
            yield Wait(rank, step, action, need.actions(microbatch), on)


def _lowered_waits(schedule: LoweredSchedule, heads: list[int]) -> Iterable[Wait]:
    for rank, step in enumerate(heads):
        if step < len(schedule.actions[rank]):
            action = schedule.actions[rank][step]
            assert isinstance(action, Transfer | Exchange)  # nothing else waits
            yield Wait(rank, step, action, (mate_of(action),), peer_of(schedule, action))
