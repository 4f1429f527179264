"""V schedules from a building block: each microbatch does the same, six slots after the last one.

A block says in which slot each rank runs the two forwards and the two backwards of microbatch 0,
and so how long an activation stays and how much memory that takes. Repeated every six slots it
meets nobody; weight gradients fill what is left; the two ends, where slots stay empty, are pulled
together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import Final, NamedTuple, TypeAlias, final

from ppframe.schedule.action import ActionKind, Compute
from ppframe.schedule.bulk import computes
from ppframe.schedule.dependencies import dependencies
from ppframe.schedule.ir import Schedule
from ppframe.schedule.placement import Placement
from ppframe.schedule.rows import Rows
from ppframe.schedule.walk import ComputeWalk

PERIOD: Final = 6
"""Slots from a microbatch to the next: a rank runs six actions for each."""

_FREE: Final = 0
_FORWARDS, _BACKWARDS, _WEIGHTS = (1, 2), (3, 4), (5, 6)
_WEIGHT_OF: Final = {3: 5, 4: 6}
_GAIN: Final = (0, 1, 1, 0, 0, -1, -1)
"""What an action adds to the activations that its rank holds, by its code."""
_WITHOUT_WEIGHTS: Final = bytes(_FREE if code in _WEIGHTS else code for code in range(256))

_What: TypeAlias = tuple[int, ActionKind]
"""A stage and what it does."""


class Block(NamedTuple):
    """The slots of microbatch 0 on a rank, whose chunks are stages r and 2 P - 1 - r.

    Args:
        forward_0: F of the first chunk.
        forward_1: F of the second chunk.
        backward_1: B of the second chunk.
        backward_0: B of the first chunk.
    """

    forward_0: int
    forward_1: int
    backward_1: int
    backward_0: int


def v_rows(blocks: Sequence[Block], microbatches: int) -> Rows:
    """For each rank the actions of the schedule that repeats a block.

    Fewer than 2 P microbatches leave no steady state, and how well they go together is a matter of
    luck: then the schedule of 2 P with the last ones left out is taken where it is shorter.

    Args:
        blocks: the block of each rank; together they keep the order of the stages, and on each rank
            repetitions leave two slots of every six free.
        microbatches: microbatches (M), any.
    """
    rows, full = _rows(blocks, microbatches), 2 * len(blocks)
    if microbatches >= full:
        return rows
    cut = (
        tuple(action for action in row if action.microbatch < microbatches)
        for row in _rows(blocks, full)
    )
    return min(rows, tuple(cut), key=_makespan)


def _rows(blocks: Sequence[Block], microbatches: int) -> tuple[tuple[Compute, ...], ...]:
    longest = max(block.backward_0 - block.forward_0 for block in blocks)
    enough = longest // PERIOD + 4  # with more, only the steady state is longer
    planned = min(microbatches, enough)
    lanes = [Lane(block, planned, Lane(block, enough).peak) for block in blocks]
    return Grid(lanes, planned).pulled_together().rows(microbatches)


def _makespan(rows: Rows) -> int:
    walk = ComputeWalk(Schedule(rows, Placement.v(len(rows))))
    return max(ends[-1] for ends in walk.ends)


@final
class Lane:
    """The slots of a rank: what runs in each, by its code, and what the rank holds after it.

    Codes 1 to 4 are the actions in the order of the block, 5 and 6 the weight gradients of 3 and 4.

    Args:
        block: the slots of microbatch 0.
        microbatches: how many there are.
        peak: the most that the rank may hold when something moves; None is what it holds before.
    """

    def __init__(self, block: Block, microbatches: int, peak: int | None = None) -> None:
        self.steady = range(block.backward_0, block.forward_0 + PERIOD * (microbatches - 1) + 1)
        self.codes = bytearray(block.backward_0 + (PERIOD + 2) * microbatches)
        for code, first in enumerate(block, start=1):
            for microbatch in range(microbatches):
                self.codes[first + PERIOD * microbatch] = code
        self._fill(0, deque())
        self._held = list(accumulate(_GAIN[code] for code in self.codes))
        self.peak = max(self._held) if peak is None else peak

    @property
    def last_forward(self) -> int:
        """The slot of the last forward."""
        return max(map(self.codes.rfind, _FORWARDS))

    def move(self, slot: int, first: int) -> int:
        """Move what runs in a slot to the earliest free one from `first` on; returns where it is.

        The rank never comes to hold more than its peak.
        """
        code, held = self.codes[slot], self._held
        gain = _GAIN[code]
        if gain > 0:
            full = (at for at in range(slot - 1, first - 1, -1) if held[at] >= self.peak)
            first = next(full, first - 1) + 1
        target = self.codes.find(_FREE, first, slot)
        if target < 0:
            return slot
        self.codes[slot], self.codes[target] = _FREE, code
        if gain:
            held[target:slot] = [holds + gain for holds in held[target:slot]]
        return target

    def drop_last_weights(self) -> None:
        """Take out the weight gradients that come after the last forward."""
        first = self.last_forward + 1
        self.codes[first:] = self.codes[first:].translate(_WITHOUT_WEIGHTS)

    def refill(self) -> None:
        """Put back what `drop_last_weights` took out, as early as it fits."""
        first = self.last_forward + 1
        waiting = deque(_WEIGHT_OF[code] for code in self.codes[:first] if code in _BACKWARDS)
        for code in self.codes[:first]:
            if code in _WEIGHTS:
                waiting.remove(code)
        self._fill(first, waiting)

    def _fill(self, first: int, waiting: deque[int]) -> None:
        """Put weight gradients into the free slots, in the order of their backwards.

        Args:
            first: where to begin.
            waiting: weight gradients whose backwards lie before that; is emptied.
        """
        for slot in range(first, len(self.codes)):
            code = self.codes[slot]
            if code == _FREE and waiting:
                self.codes[slot] = waiting.popleft()
            elif code in _BACKWARDS:
                waiting.append(_WEIGHT_OF[code])


@final
class Grid:
    """The lanes of all ranks.

    Args:
        lanes: the lane of each rank.
        microbatches: how many microbatches there are in them.
    """

    def __init__(self, lanes: Sequence[Lane], microbatches: int) -> None:
        self._lanes, self._microbatches = lanes, microbatches
        num_stages = 2 * len(lanes)
        self._whats = [_whats(rank, num_stages) for rank in range(len(lanes))]
        self._needs = {
            what: _needs(what, num_stages) for row in self._whats for what in row.values()
        }
        self._slots: dict[_What, list[int]] = {what: [] for what in self._needs}
        for slot, rank, code in self._all():
            self._slots[self._whats[rank][code]].append(slot)

    def pulled_together(self) -> Grid:
        """Itself, after what comes before and after the steady state moved to where it can run.

        First everything, weight gradients staying in their order; then the backwards after a rank's
        last forward once more, as if there were no weight gradients, which fill what they leave.
        """
        steady = [lane.steady for lane in self._lanes]
        self._pull(lambda rank, slot, _: slot not in steady[rank])
        for lane in self._lanes:
            lane.drop_last_weights()
        last = [lane.last_forward for lane in self._lanes]
        self._pull(lambda rank, slot, code: slot > last[rank] and code in _BACKWARDS)
        for lane in self._lanes:
            lane.refill()
        return self

    def rows(self, microbatches: int) -> tuple[tuple[Compute, ...], ...]:
        """For each rank its actions, for as many microbatches as there are or more."""
        more = microbatches - self._microbatches
        rows = []
        for lane, whats in zip(self._lanes, self._whats, strict=True):
            end = lane.steady.stop - 1
            period = lane.codes[end - PERIOD : end] if more else b""
            codes = (lane.codes[:end] + period * more + lane.codes[end:]).translate(None, b"\0")
            next_of = {
                code: iter(computes(kind, zip(repeat(stage), range(microbatches)))).__next__
                for code, (stage, kind) in whats.items()
            }
            rows.append(tuple([next_of[code]() for code in codes]))
        return tuple(rows)

    def _pull(self, is_moved: Callable[[int, int, int], bool]) -> None:
        """Move actions, in the order of their slots, to right after what they need.

        Microbatches are alike: whichever of a stage's actions of a kind stands first is the first.

        Args:
            is_moved: rank, slot and code of an action → whether it may be moved.
        """
        done = dict.fromkeys(self._needs, 0)
        for slot, rank, code in self._all():
            what = self._whats[rank][code]
            microbatch = done[what]
            done[what] += 1
            if is_moved(rank, slot, code):
                first = max((self._slots[n][microbatch] for n in self._needs[what]), default=-1)
                self._slots[what][microbatch] = self._lanes[rank].move(slot, first + 1)
        for slots in self._slots.values():
            slots.sort()

    def _all(self) -> Iterator[tuple[int, int, int]]:
        """Slot, rank and code of each action, in the order of slots.

        What moves to an earlier slot while this goes on has been seen.
        """
        for slot in range(max(len(lane.codes) for lane in self._lanes)):
            for rank, lane in enumerate(self._lanes):
                if slot < len(lane.codes) and (code := lane.codes[slot]) != _FREE:
                    yield slot, rank, code


def _whats(rank: int, num_stages: int) -> dict[int, _What]:
    """What the codes of a rank mean."""
    first, second = rank, num_stages - 1 - rank
    f, b, w = ActionKind.F, ActionKind.B, ActionKind.W
    meanings = ((first, f), (second, f), (second, b), (first, b), (second, w), (first, w))
    return dict(enumerate(meanings, start=1))


def _needs(what: _What, num_stages: int) -> list[_What]:
    """What the same microbatch must have done before, when every backward is split."""
    return [
        (action.stage, action.kind)
        for choice in dependencies(Compute(*what, 0), num_stages)
        for action in choice
        if action.kind is not ActionKind.BW
    ]
