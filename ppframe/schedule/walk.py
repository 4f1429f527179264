"""Walks: a schedule run on paper, to find its times, its order, or that it never ends.

Each rank takes its actions in order and waits where one is not ready. Whatever the speed of the
ranks, such a run comes to the same end, so one walk proves a schedule for all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, final

from ppframe.schedule.action import (
    Action,
    ActionKind,
    Compute,
    Exchange,
    Transfer,
    singles_of,
)
from ppframe.schedule.faults import Wait
from ppframe.schedule.ir import Schedule, peer_of
from ppframe.schedule.ledger import NOWHERE, Ledger
from ppframe.schedule.slots import Slots

UNIT_TIMES: Final = {ActionKind.F: 1, ActionKind.B: 1, ActionKind.W: 1, ActionKind.BW: 2}
"""Durations in the unit costs of the papers, where forward and both backward parts are equal."""


@final
class ComputeWalk:
    """A compute-only schedule run as soon as its dependencies allow, without latency.

    Args:
        schedule: complete, each action once.
        durations: how long an action of each kind takes, 1 or more; a pair takes the sum. None:
            every action takes 1.
    """

    def __init__(
        self, schedule: Schedule, durations: Mapping[ActionKind, int] | None = UNIT_TIMES
    ) -> None:
        self.starts: list[list[int]] = [[] for _ in schedule.actions]
        """For each rank the start of each action."""
        self.ends: list[list[int]] = [[] for _ in schedule.actions]
        """For each rank the end of each action."""
        self._schedule = schedule
        self._times = dict.fromkeys(UNIT_TIMES, 1) if durations is None else durations
        self._pairs_take_one = durations is None
        self._slots = Slots(schedule.num_stages, schedule.num_microbatches)
        self._finish = [0] * self._slots.count
        self._waiting: dict[int, list[int]] = {}
        self._ready = deque(range(schedule.ranks))
        while self._ready:
            self._advance(self._ready.popleft())

    @property
    def waits(self) -> tuple[Wait, ...]:
        """Ranks that did not come to their end; empty for a legal schedule."""
        return tuple(self._waits())

    def _advance(self, rank: int) -> None:
        """Run a rank until it waits or ends; wake who waits for what it leaves."""
        row, starts, ends = self._schedule.actions[rank], self.starts[rank], self.ends[rank]
        needed, left, times = self._slots.needed_by, self._slots.left_by, self._times
        finish, waiting = self._finish, self._waiting
        clock = ends[-1] if ends else 0
        needs: Sequence[int]
        leaves: Sequence[int]
        for step in range(len(ends), len(row)):
            action = row[step]
            if type(action) is Compute:
                stage, kind, m = action
                needs, leaves, time = needed[kind][stage], left[kind][stage], times[kind]
            else:
                needs, leaves, time, m = *self._of_pair(action), 0
            missing = NOWHERE
            for base in needs:
                end = finish[base + m]
                if end > clock:
                    clock = end
                elif not end and missing == NOWHERE:
                    missing = base + m
            if missing != NOWHERE:
                waiting.setdefault(missing, []).append(rank)
                return
            starts.append(clock)
            clock += time
            ends.append(clock)
            for base in leaves:
                finish[base + m] = clock
                if base + m in waiting:
                    self._ready.extend(waiting.pop(base + m))

    def _of_pair(self, pair: Action) -> tuple[list[int], list[int], int]:
        """Slots that a pair needs, slots that it leaves, and how long it takes."""
        needed, left, singles = self._slots.needed_by, self._slots.left_by, singles_of(pair)
        needs = [base + m for stage, kind, m in singles for base in needed[kind][stage]]
        leaves = [base + m for stage, kind, m in singles for base in left[kind][stage]]
        time = sum(self._times[kind] for _, kind, _ in singles)
        return needs, leaves, 1 if self._pairs_take_one else time

    def _waits(self) -> Iterator[Wait]:
        schedule = self._schedule
        for slot, ranks in self._waiting.items():
            need, microbatch = self._slots.meaning(slot)
            on = schedule.rank_of(need.stage, microbatch)
            for rank in ranks:
                step = len(self.ends[rank])
                missing = need.actions(microbatch)
                yield Wait(rank, step, schedule.actions[rank][step], missing, on)


@final
class LoweredWalk(NamedTuple):
    """A lowered schedule run by rendezvous: a send and its receive happen together.

    Args:
        order: positions of the actions, as the ledger has them, in an order in which one controller
            can run them; the two ends of a message stand next to each other, the send first.
        waits: ranks that did not come to their end; empty for a legal schedule.
    """

    order: list[int]
    waits: tuple[Wait, ...]


def walk_lowered(ledger: Ledger) -> LoweredWalk:
    """Run a lowered schedule with blocking sends; ranks take turns, one computation each.

    What a rank needs of itself must stand before it in its list; the walk looks at messages only.
    """
    order, heads = _walked(ledger, {})
    return LoweredWalk(order, tuple(_lowered_waits(ledger, heads)))


def walk_by_microbatch(ledger: Ledger) -> list[int] | None:
    """An order as `walk_lowered` has it, with the forwards of a stage in that of microbatches.

    With two chains, two ranks run the same stage for different microbatches. Whoever walks both can
    keep the order that the uncut model has, for what forwards leave in it.

    Args:
        ledger: a schedule that comes to its end.

    Returns:
        positions of the actions; None where the lists can't be walked so.
    """
    earlier: dict[int, list[int]] = {}
    for stage in range(ledger.schedule.num_stages):
        for before, after in pairwise(ledger.positions(ActionKind.F, stage)):
            if before // ledger.stride != after // ledger.stride:
                earlier.setdefault(after, []).append(before)
    order, _ = _walked(ledger, earlier)
    return order if len(order) == sum(map(len, ledger.schedule.actions)) else None


def _walked(ledger: Ledger, earlier: Mapping[int, Sequence[int]]) -> tuple[list[int], list[int]]:
    """Positions in the order in which they run, and for each rank the one at which it stops.

    `earlier` has, for positions of computations, others that shall run before them.
    """
    stride = ledger.stride
    mates, sends = ledger.mates()
    rows = ledger.schedule.actions
    heads = [rank * stride for rank in range(len(rows))]
    lasts = [head + len(row) for head, row in zip(heads, rows, strict=True)]
    order: list[int] = []
    waiting: dict[int, list[int]] = {}
    ready = deque(range(len(rows)))
    while ready:
        rank = ready.popleft()
        while (position := heads[rank]) < lasts[rank]:
            mate = mates[position]
            before = earlier.get(position)
            awaited = before and [p for p in before if heads[p // stride] <= p]
            if awaited:
                waiting.setdefault(awaited[0], []).append(rank)
                break
            if mate == NOWHERE:
                order.append(position)
                heads[rank] = position + 1
                ready.append(rank)
                ready.extend(waiting.pop(position, ()))
                break
            peer = mate // stride
            if heads[peer] != mate:
                break
            order.extend((position, mate) if sends[position] else (mate, position))
            heads[rank] = position + 1
            heads[peer] += 1
            ready.append(peer)
    return order, heads


def _lowered_waits(ledger: Ledger, heads: list[int]) -> Iterator[Wait]:
    schedule = ledger.schedule
    for rank, head in enumerate(heads):
        step = head - rank * ledger.stride
        if step < len(schedule.actions[rank]):
            action = schedule.actions[rank][step]
            assert isinstance(action, Transfer | Exchange)  # nothing else waits
            mate = action.mirror if isinstance(action, Exchange) else action.other_end
            yield Wait(rank, step, action, (mate,), peer_of(schedule, action))
