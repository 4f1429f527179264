"""Time and memory of the ranks of a V, as actions run one after the other."""

from __future__ import annotations

from collections import deque
from typing import final

from ppframe.schedule.action import ActionKind, Compute
from ppframe.schedule.bulk import computes
from ppframe.schedule.generators.zb_search import Times
from ppframe.schedule.rows import Rows

F, B, W = ActionKind.F, ActionKind.B, ActionKind.W


@final
class Clock:
    """What has run on two stages of each rank, when, and what it holds.

    Microbatches are alike: an action of a kind on a stage is of the next one there.

    Args:
        times: durations, latency and memory of the stages.
        microbatches: microbatches (M).

    Attributes:
        forward_ends: for each stage the ends of its forwards.
        backward_ends: for each stage the ends of its backwards for the input.
        pending: for each rank the stages of its weight gradients that have yet to run, in order.
        held: for each rank the activations that it holds now, of a stage and microbatch each.
        most_held: the most that a rank has held.
        now: for each rank the end of what it ran last.
        waited: for each rank how long it has waited since its first start.
        most_waited: the longest of these.
    """

    def __init__(self, times: Times, microbatches: int) -> None:
        self._times, self._microbatches = times, microbatches
        self._last = len(times.forward) - 1
        ranks = len(times.forward) // 2
        self.forward_ends: list[list[float]] = [[] for _ in times.forward]
        self.backward_ends: list[list[float]] = [[] for _ in times.forward]
        self.pending: list[deque[int]] = [deque() for _ in range(ranks)]
        self.held, self.most_held = [0.0] * ranks, 0.0
        self.now = [0.0] * ranks
        self.waited, self.most_waited = [0.0] * ranks, 0.0
        self._steps: list[list[tuple[ActionKind, int]]] = [[] for _ in range(ranks)]

    @property
    def span(self) -> float:
        """The longest time from a rank's first start to its last end."""
        firsts = zip(self.now, self.forward_ends, self._times.forward, strict=False)
        return max(end - (ends[0] - forward) for end, ends, forward in firsts)

    def rows(self) -> Rows:
        """For each rank its actions, in the order in which they ran."""
        microbatches = range(self._microbatches)
        number = {
            (kind, stage): iter(computes(kind, [(stage, index) for index in microbatches]))
            for kind in (F, B, W)
            for stage in range(self._last + 1)
        }
        return tuple(tuple([next(number[step]) for step in steps]) for steps in self._steps)

    def rank_of(self, stage: int) -> int:
        """The rank of a stage."""
        return min(stage, self._last - stage)

    def arrival(self, kind: ActionKind, stage: int) -> float | None:
        """When the input of a stage's next F or B comes; None: not known yet, or all have run."""
        ends = self.forward_ends if kind is F else self.backward_ends
        source = stage - 1 if kind is F else stage + 1
        index = len(ends[stage])
        if index >= self._microbatches:
            return None
        if source < 0:
            return 0.0
        if source > self._last:
            ends, source = self.forward_ends, stage
        if index >= len(ends[source]):
            return None
        is_hop = self.rank_of(source) != self.rank_of(stage)
        return ends[source][index] + (self._times.hop[source] if is_hop else 0.0)

    def run(self, kind: ActionKind, stage: int) -> bool:
        """Run a stage's next F or B when its input comes; False: that is not known."""
        arrival, rank, times = self.arrival(kind, stage), self.rank_of(stage), self._times
        if arrival is None:
            return False
        if self._steps[rank]:
            self.waited[rank] += max(0.0, arrival - self.now[rank])
            self.most_waited = max(self.most_waited, self.waited[rank])
        is_forward = kind is F
        ends = self.forward_ends if is_forward else self.backward_ends
        duration = times.forward[stage] if is_forward else times.inputs[stage]
        self.now[rank] = max(arrival, self.now[rank]) + duration
        self.held[rank] += 1.0 if is_forward else times.share[stage] - 1
        self.most_held = max(self.most_held, self.held[rank])
        ends[stage].append(self.now[rank])
        self._steps[rank].append((kind, stage))
        if not is_forward:
            self.pending[rank].append(stage)
        return True

    def run_weights(self, rank: int) -> None:
        """Run the first pending weight gradient of a rank."""
        stage = self.pending[rank].popleft()
        self.now[rank] += self._times.weights[stage]
        self.held[rank] -= self._times.share[stage]
        self._steps[rank].append((W, stage))

    def follow(self, rows: Rows) -> None:
        """Run an order that is given: for each rank its actions, with B and W apart."""
        waiting = [deque(action for action in row if isinstance(action, Compute)) for row in rows]
        while any(waiting):
            for rank, row in enumerate(waiting):
                while row and self._runs(rank, row[0]):
                    row.popleft()

    def _runs(self, rank: int, action: Compute) -> bool:
        if action.kind is not W:
            return self.run(action.kind, action.stage)
        self.pending[rank].remove(action.stage)
        self.pending[rank].appendleft(action.stage)
        self.run_weights(rank)
        return True
