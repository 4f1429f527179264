"""The search behind v-zb for given costs: greedy passes over two stages of each rank in a V."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple, final

from ppframe.schedule.action import ActionKind
from ppframe.schedule.cost import Cost
from ppframe.schedule.generators.v_clock import Clock
from ppframe.schedule.generators.zb_search import Times
from ppframe.schedule.rows import Rows

F, B = ActionKind.F, ActionKind.B


class VVariant(NamedTuple):
    """What the greedy passes of a search differ in.

    Args:
        fill_forwards: a weight gradient may go into a gap before a forward that is shorter than it.
        fill_backwards: the same before a backward of the first chunk.
        first_ranks_lead: which rank looks first whether its gap would be the longest of all.
    """

    fill_forwards: bool
    fill_backwards: bool
    first_ranks_lead: bool


PUBLISHED = (VVariant(True, True, False), VVariant(False, True, False))
VARIANTS = (*PUBLISHED, VVariant(True, True, True), VVariant(True, False, False))


def v_search(
    microbatches: int, cost: Cost | None, memory_limit: float, others: Sequence[Rows]
) -> Rows:
    """Of the variants and of other orders the one whose longest span is least; of equals the first.

    Args:
        microbatches: microbatches (M).
        cost: of the 2 P stages; None is one unit for F, B and W each.
        memory_limit: activations of a microbatch on a rank, of both its stages.
        others: orders that keep the limit, one at least; for each rank its actions, with B and W
            apart.
    """
    times = Times.of(cost, 2 * len(others[0]))
    clocks = []
    for variant in VARIANTS:
        clock = Clock(times, microbatches)
        if VPass(clock, times, 2 * memory_limit, variant).runs_to_its_end(microbatches):
            clocks.append(clock)
    for rows in others:
        clocks.append(Clock(times, microbatches))
        clocks[-1].follow(rows)
    least = min(clock.span for clock in clocks)
    return next(clock.rows() for clock in clocks if clock.span <= least + times.slack)


@final
class VPass:
    """One greedy pass: each round gives every rank a backward and a forward of one of its chunks.

    It begins as the handwritten order does: forwards of the first chunk until the first microbatch
    comes back, then of both in turn until its backward comes. After that a rank takes the backward
    of its first chunk as soon as its input is known, of its second otherwise, and the forward of
    the chunk whose backward is next.

    Args:
        clock: runs what the pass decides; nothing has run on it yet.
        times: durations and memory of the stages.
        limit: activations of a stage that a rank may hold.
        variant: how the pass decides.
    """

    def __init__(self, clock: Clock, times: Times, limit: float, variant: VVariant) -> None:
        self._clock, self._times, self._variant = clock, times, variant
        self._limit = limit * (1 + 1e-9)
        self._last, self._ranks = len(times.forward) - 1, len(times.forward) // 2
        self._microbatches = 0

    def runs_to_its_end(self, microbatches: int) -> bool:
        """Run all of so many microbatches; False where memory or the order stops that."""
        self._microbatches = microbatches
        self._fill()
        return self._turn() and self._rounds() and self._clock.most_held <= self._limit

    def _fill(self) -> None:
        """Forwards of the first chunk until the first microbatch comes back on the second.

        Counted from the last rank up; the ranks above run what a rank runs more. Enough memory is
        left for what `_turn` runs.
        """
        done, times = self._clock.forward_ends, self._times
        for rank in range(self._ranks):
            self._clock.run(F, rank)
        for rank in reversed(range(self._ranks)):
            arrival = self._clock.arrival(F, self._last - rank) or 0.0
            room = int(min(self._limit - 2 * rank - 1, self._microbatches))
            while rank < self._ranks - 1 and len(done[rank]) < room:
                if self._clock.now[rank] + times.forward[rank] > arrival + times.slack:
                    break
                for above in range(rank + 1):
                    self._clock.run(F, above)
            self._clock.run(F, self._last - rank)

    def _turn(self) -> bool:
        """Forwards of both chunks in turn, until each rank has run as many as the one before it."""
        chunks = cycle((0, 1))
        for rank in range(1, self._ranks):
            while self._is_behind(rank):
                if not self._one_more(rank, next(chunks)):
                    return False
        return True

    def _one_more(self, rank: int, chunk: int) -> bool:
        """A forward of this chunk on a rank and all below; False: the input of one isn't known."""
        for below in reversed(range(rank, self._ranks)):
            stage = self._last - below if chunk else below
            left = len(self._clock.forward_ends[stage]) < self._microbatches
            if left and not self._clock.run(F, stage):
                return False
        return True

    def _is_behind(self, rank: int) -> bool:
        """Whether a rank has run fewer forwards than the one before, or not more of the second."""
        done, back = self._clock.forward_ends, self._last - rank
        own, before = (len(done[s]) + len(done[self._last - s]) for s in (rank, rank - 1))
        return own < before or len(done[back]) <= len(done[back + 1]) < self._microbatches

    def _rounds(self) -> bool:
        """A backward and a forward of each rank, until there are none left."""
        while any(len(ends) < self._microbatches for ends in self._clock.backward_ends):
            if not self._backwards() + self._forwards():
                return False
        for rank in range(self._ranks):
            while self._clock.pending[rank]:
                self._clock.run_weights(rank)
        return True

    def _backwards(self) -> int:
        """The next backward of every rank whose input comes in this round; how many ran."""
        chosen = [self._next_backward(rank) for rank in range(self._ranks)]
        firsts = [rank for rank, stage in enumerate(chosen) if stage == rank]
        seconds = [stage for rank, stage in enumerate(chosen) if stage not in (None, rank)]
        if not self._variant.first_ranks_lead:
            firsts.reverse()
        return sum(self._prepared(B, stage) for stage in firsts + seconds)

    def _forwards(self) -> int:
        """A forward of every rank, of the chunk whose backward is next; how many ran."""
        chosen = [
            rank if self._knows_first(rank) else self._last - rank for rank in range(self._ranks)
        ]
        order = sorted(chosen)  # each stage after the one before it
        done = self._clock.forward_ends
        return sum(self._prepared(F, s) for s in order if len(done[s]) < self._microbatches)

    def _next_backward(self, rank: int) -> int | None:
        """Stage of a rank's next backward; None: none can come."""
        back = self._last - rank
        done = len(self._clock.backward_ends[back])
        if self._knows_first(rank):
            return rank
        if done < len(self._clock.forward_ends[back]):
            return back
        return rank if len(self._clock.backward_ends[rank]) < self._microbatches else None

    def _knows_first(self, rank: int) -> bool:
        """Whether it is known when the input of the next backward of the first chunk comes."""
        return self._clock.arrival(B, rank) is not None

    def _prepared(self, kind: ActionKind, stage: int) -> bool:
        """Run weight gradients that memory asks for or a wait leaves time for, then the action.

        Returns:
            whether it ran: it does not when its input is not known.
        """
        clock, times = self._clock, self._times
        arrival, rank = clock.arrival(kind, stage), clock.rank_of(stage)
        if arrival is None:
            return False
        pending, more = clock.pending[rank], 1.0 if kind is F else times.share[stage] - 1
        while pending and clock.held[rank] + more > self._limit:
            clock.run_weights(rank)
        while pending and clock.now[rank] + times.weights[pending[0]] <= arrival + times.slack:
            clock.run_weights(rank)
        waited = clock.waited[rank] + arrival - clock.now[rank]
        if pending and self._fills(kind, stage) and waited > clock.most_waited + times.slack:
            clock.run_weights(rank)
        return clock.run(kind, stage)

    def _fills(self, kind: ActionKind, stage: int) -> bool:
        """Whether a gap before this that is too short for a weight gradient may hold one."""
        if kind is F:
            return self._variant.fill_forwards
        return self._variant.fill_backwards and stage < self._ranks
