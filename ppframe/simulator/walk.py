"""The longest path through a schedule: when each action starts and ends, and what it waited for.

Each rank goes through its list until something it needs isn't there yet; whoever leaves that behind
wakes it. An action is looked at again only when what it waited for has come, so the time is linear
in the number of actions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Final, TypeAlias, final

from ppframe.errors import InternalError
from ppframe.schedule import (
    Action,
    ActionKind,
    Compute,
    Exchange,
    LoweredSchedule,
    Overlap,
    Transfer,
    verify,
)
from ppframe.schedule.bulk import paused_collection
from ppframe.schedule.ir import AnySchedule
from ppframe.schedule.slots import KINDS, Slots
from ppframe.simulator.timeline import COMPUTES, TimelineEntry

_SINGLES: Final = (Compute, Transfer)
_NO_CAUSE: Final = -1
_NOT_YET: Final = -1.0

_Single: TypeAlias = Compute | Transfer
_Needs: TypeAlias = dict[ActionKind, list[list[tuple[bool, int]]]]
"""Kind → stage → for each need whether another rank leaves it, and its slot less the microbatch."""
_Leaves: TypeAlias = dict[ActionKind, list[list[int]]]
"""Kind → stage → the slots of what it leaves, less the microbatch."""


@final
class Walk:
    """All actions of a schedule, timed.

    A computation starts when its rank is free and what it needs has come. A receive, also that of
    an exchange, starts when its rank is free and ends when the message has come. A send leaves at
    once and holds nobody; a reduction takes no time.

    Args:
        schedule: compute-only, where a hop delays the computation that needs the result; or
            lowered, where it delays the receive.
        durations: for each rank the duration of each of its actions, 0 for all but computations.
        latency: for each stage, the latency of a hop from there to another rank.

    Raises:
        ScheduleError: the schedule can't run to its end.
    """

    def __init__(
        self,
        schedule: AnySchedule,
        durations: Sequence[Sequence[float]],
        latency: Sequence[float],
    ) -> None:
        slots = _slots(schedule)
        self._meaning, self._rank_of = slots.meaning, schedule.rank_of
        self._rows = schedule.actions
        self._durations = durations
        self._latency = latency
        # By slot: when it is there for other ranks, and the step that left it.
        self._there = [_NOT_YET] * slots.count
        self._left_at = [0] * slots.count
        self._needs, self._leaves = _tables(schedule, slots)
        self._waiting: dict[int, list[int]] = {}
        self._awake = deque(range(schedule.ranks))
        self._starts: list[list[float]] = [[] for _ in self._rows]
        self._ends: list[list[float]] = [[] for _ in self._rows]
        self._causes: list[list[int]] = [[] for _ in self._rows]
        with paused_collection():
            runs = [self._run(rank) for rank in range(schedule.ranks)]
            while self._awake:
                rank = self._awake.popleft()
                for slot in runs[rank]:
                    self._waiting.setdefault(slot, []).append(rank)
                    break
            if self._waiting:
                verify(schedule)
                raise InternalError("A schedule that verifies must simulate to its end, but stops.")
            self.entries = tuple(map(self._entries, range(schedule.ranks)))

    def critical_path(self) -> tuple[TimelineEntry, ...]:
        """Computations from the first to the one that ends last, each the reason for the next."""
        last = [row[-1] if row else -1.0 for row in self._ends]
        rank = last.index(max(last))
        step = len(self._ends[rank]) - 1
        path: list[TimelineEntry] = []
        while step >= 0:
            entry, cause = self.entries[rank][step], self._causes[rank][step]
            if entry.is_compute:
                path.append(entry)
            step -= 1
            if cause != _NO_CAUSE:
                need, microbatch = self._meaning(cause)
                rank, step = self._rank_of(need.stage, microbatch), self._left_at[cause]
                # A message leaves when its send starts, an exchange's before the exchange ends:
                # the reason for it is what stands before.
                step -= 0 if self.entries[rank][step].is_compute else 1
        return tuple(reversed(path))

    def _run(self, rank: int) -> Iterator[int]:
        """Go through the list of a rank; yields each slot for which it has to wait."""
        durations, needs, there = self._durations[rank], self._needs, self._there
        starts, ends, causes = self._starts[rank], self._ends[rank], self._causes[rank]
        now = 0.0
        for step, action in enumerate(self._rows[rank]):
            singles: Sequence[_Single]
            if isinstance(action, _SINGLES):
                singles, (stage, kind, microbatch) = (action,), action
                needed = needs[kind][stage]
            else:
                singles, microbatch = self._parts(action, step, now), 0
                needed = [(r, base + m) for s, kind, m in singles for r, base in needs[kind][s]]
            start, cause = now, _NO_CAUSE
            for is_remote, base in needed:
                slot = base + microbatch
                if there[slot] == _NOT_YET:
                    yield slot
                if is_remote and there[slot] > start:
                    start, cause = there[slot], slot
            starts.append(start if type(action) in COMPUTES else now)
            now = start + durations[step]
            ends.append(now)
            causes.append(cause)
            self._leave(singles, step, now)

    def _parts(self, action: Action, step: int, now: float) -> Sequence[_Single]:
        """What a rank waits for in a pair; the send of an exchange leaves before it waits."""
        if isinstance(action, Exchange):
            self._leave((action.send,), step, now)
            return (action.receive,)
        return action if isinstance(action, Overlap) else ()

    def _leave(self, singles: Sequence[_Single], step: int, time: float) -> None:
        """Enter what actions leave behind at a time, and wake who waits for it."""
        there, left_at, waiting = self._there, self._left_at, self._waiting
        for stage, kind, microbatch in singles:
            arrival = time + self._latency[stage]
            for base in self._leaves[kind][stage]:
                slot = base + microbatch
                there[slot] = arrival
                left_at[slot] = step
                if slot in waiting:
                    self._awake.extend(waiting.pop(slot))

    def _entries(self, rank: int) -> tuple[TimelineEntry, ...]:
        columns = zip(repeat(rank), self._rows[rank], self._starts[rank], self._ends[rank])
        return tuple(map(TimelineEntry._make, columns))


def _tables(schedule: AnySchedule, slots: Slots) -> tuple[_Needs, _Leaves]:
    """What each kind needs and leaves on each stage; what nobody needs isn't left."""
    rank_of = partial(schedule.rank_of, microbatch=0)
    needs: _Needs = {kind: [] for kind in KINDS}
    for kind, by_stage in slots.needed_by.items():
        for stage, bases in enumerate(by_stage):
            ranks = [rank_of(slots.meaning(base)[0].stage) for base in bases]
            are_remote = [rank != rank_of(stage) for rank in ranks]
            needs[kind].append(list(zip(are_remote, bases, strict=True)))
    needed = {base for rows in needs.values() for row in rows for _, base in row}
    leaves = {
        kind: [[base for base in bases if base in needed] for bases in by_stage]
        for kind, by_stage in slots.left_by.items()
    }
    return needs, leaves


def _slots(schedule: AnySchedule) -> Slots:
    owners = schedule.placement
    is_lowered = isinstance(schedule, LoweredSchedule)
    return Slots(
        schedule.num_stages,
        max(1, schedule.num_microbatches),
        lambda stage: is_lowered and owners[stage] != owners[stage + 1],
    )
