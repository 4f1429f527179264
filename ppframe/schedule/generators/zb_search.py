"""The search behind zb-1p and zb-2p: a greedy pass under a memory limit, in eight variants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, final

from ppframe.errors import ConfigError
from ppframe.schedule.action import ActionKind, Compute
from ppframe.schedule.cost import Cost
from ppframe.schedule.generators.facts import Shape
from ppframe.schedule.rows import Rows

F, B, W = ActionKind.F, ActionKind.B, ActionKind.W
UNIT = Cost(forward=1, backward_input=1, backward_weight=1)


class Variant(NamedTuple):
    """What the greedy passes of a search differ in.

    Args:
        overfill: a rank may run one more forward before its first backward than fit into the wait
            for it.
        backward_first: a rank that stays two forwards ahead of the next one leaves one out where it
            would hold up a backward.
        fill_all: a weight gradient goes into every gap, however short.
    """

    overfill: bool
    backward_first: bool
    fill_all: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """What a search knows of the stages, a number for each.

    Args:
        forward: duration of F.
        inputs: duration of B.
        weights: duration of W.
        hop: latency of a hop from the stage to another rank.
        share: what B leaves for W, in activations; above 1 where that is more than it found.
        slack: times that differ by less count as equal.
    """

    forward: tuple[float, ...]
    inputs: tuple[float, ...]
    weights: tuple[float, ...]
    hop: tuple[float, ...]
    share: tuple[float, ...]
    slack: float

    @classmethod
    def of(cls, cost: Cost | None, num_stages: int) -> Times:
        """Those of a cost; None is one unit for F, B and W each.

        Raises:
            ConfigError: the cost is for another number of stages.
        """
        cost = cost or UNIT
        fields = ("forward", "backward_input", "backward_weight", "transfer", "weight_share")
        forward, inputs, weights, hop, share = (cost.of_stages(f, num_stages) for f in fields)
        return cls(
            forward=forward,
            inputs=inputs,
            weights=weights,
            hop=hop,
            share=share,
            slack=1e-9 * max(*forward, *inputs, *weights, *hop),
        )

    @property
    def most_kept(self) -> float:
        """The most that one microbatch comes to on a stage, in activations."""
        return max(1.0, *self.share)


def makespan(shape: Shape) -> int:
    """In unit costs, when the limit leaves room for P microbatches."""
    ranks, _, microbatches = shape
    return 3 * microbatches + ranks - 1 + max(0, ranks - microbatches)


def search(
    ranks: int, microbatches: int, cost: Cost | None, memory_limit: float | None, *, in_flight: int
) -> Rows:
    """For each rank its actions, of the variant whose longest span is least; of equals the first.

    Args:
        ranks: pipeline ranks (P).
        microbatches: microbatches (M).
        cost: of the P stages; None is one unit for F, B and W each.
        memory_limit: activations that a rank may hold; None: for as many as are in flight.
        in_flight: microbatches of a rank that may be in flight when no limit is given.

    Raises:
        ConfigError: the limit leaves no room for one microbatch, or the cost is for another number
            of stages.
    """
    times = Times.of(cost, ranks)
    limit = in_flight - 1 + times.most_kept if memory_limit is None else memory_limit
    if not limit >= times.most_kept:
        least = f"{math.ceil(1e4 * times.most_kept) / 1e4:g}"
        raise ConfigError(
            f"must be at least {least}, what one microbatch takes on a rank, but is {limit} "
            f"(ranks {ranks}, microbatches {microbatches}). Use {least} or more.",
            path="schedule.memory_limit",
        )
    best: Pass | None = None
    for variant in map(Variant._make, product((False, True), repeat=3)):
        tried = Pass(times, microbatches, limit, variant)
        if best is None or tried.span < best.span - times.slack:
            best = tried
    assert best is not None
    return tuple(numbered(rank, kinds, microbatches) for rank, kinds in enumerate(best.kinds))


def numbered(stage: int, kinds: Sequence[ActionKind], microbatches: int) -> tuple[Compute, ...]:
    """A stage's actions of these kinds: each kind takes the microbatches in order.

    Example:
        >>> numbered(2, (F, F, B, W, B, W), 2)
        (2F0, 2F1, 2B0, 2W0, 2B1, 2W1)
    """
    number = {kind: iter(range(microbatches)) for kind in (F, B, W)}
    return tuple([tuple.__new__(Compute, (stage, kind, next(number[kind]))) for kind in kinds])


@final
class Pass:
    """One greedy pass: after the warm-up, each round gives every rank a forward and a backward.

    Args:
        times: durations, latency and memory of the stages; stage r is on rank r.
        microbatches: microbatches (M).
        limit: activations of a microbatch that a rank may hold, 1 or more.
        variant: how the pass decides.

    Attributes:
        kinds: for each rank the kinds of its actions, in order.
        span: the longest time from a rank's first start to its last end.
    """

    def __init__(self, times: Times, microbatches: int, limit: float, variant: Variant) -> None:
        self._times, self._microbatches, self._variant = times, microbatches, variant
        self._limit = limit * (1 + 1e-9)
        self._ranks = ranks = len(times.forward)
        self.kinds: list[list[ActionKind]] = [[] for _ in range(ranks)]
        self._forward_ends: list[list[float]] = [[] for _ in range(ranks)]
        self._backward_ends: list[list[float]] = [[] for _ in range(ranks)]
        self._pending = [0] * ranks
        self._held = [0.0] * ranks
        self._now = [0.0] * ranks
        self._waited = [0.0] * ranks
        self._most_waited = 0.0
        self._run()
        columns = zip(self._now, self._forward_ends, times.forward, strict=True)
        self.span = max(end - (firsts[0] - forward) for end, firsts, forward in columns)

    def _run(self) -> None:
        ranks = range(self._ranks)
        self._warm_up()
        for done in range(self._microbatches):
            going = self._going() if done else []
            for rank in going:
                self._prepare(rank, self._forward_arrival(rank), 1.0)
                self._forward(rank)
            for rank in reversed(ranks):
                self._backward(rank)
        for rank in ranks:
            self._run_weights(rank, self._pending[rank])

    def _warm_up(self) -> None:
        """The forwards that stand before a rank's first backward."""
        for rank in range(self._ranks):
            self._forward(rank)
            self._waited[rank] = 0.0
        self._most_waited = 0.0
        most = self._microbatches
        for rank, count in enumerate(self._warm_up_counts()):
            most = max(1, min(count, most))
            for _ in range(most - 1):
                self._forward(rank)
            if most < self._microbatches:
                most -= 1

    def _warm_up_counts(self) -> list[int]:
        """For each rank the forwards that fit into its memory and the wait for the first backward.

        Counted from the last rank up, as a rank that runs one too many holds up those above it.
        """
        times, counts = self._times, [1] * self._ranks
        arrival = -math.inf
        for rank in reversed(range(self._ranks)):
            forward, now = times.forward[rank], self._now[rank]
            after = max(0.0, times.share[rank] - 1)
            room = int(min(self._limit - after, self._microbatches))
            while counts[rank] < room and now + forward <= arrival + times.slack:
                counts[rank], now = counts[rank] + 1, now + forward
            if self._variant.overfill and counts[rank] < room and now < arrival - times.slack:
                counts[rank], now = counts[rank] + 1, now + forward
            arrival = max(arrival, now) + times.inputs[rank] + times.hop[rank]
        return counts

    def _going(self) -> list[int]:
        """The ranks that run their next forward in this round.

        Every rank stays a forward ahead of the next one, as long as it has any left.
        """
        done = [len(ends) for ends in self._forward_ends]
        if not self._variant.backward_first:
            return [rank for rank, count in enumerate(done) if count < self._microbatches]
        times, going = self._times, []
        arrival, ahead = math.inf, 0
        for rank in reversed(range(self._ranks)):
            now = self._now[rank]
            if done[rank] < self._microbatches:
                end = max(now, self._forward_arrival(rank)) + times.forward[rank]
                if end <= arrival + times.slack or done[rank] - ahead < 2:
                    going.append(rank)
                    done[rank], now = done[rank] + 1, end
            ahead = done[rank]
            later = now if rank == self._ranks - 1 else max(now, arrival)
            arrival = later + times.inputs[rank] + times.hop[rank]
        return going[::-1]

    def _forward_arrival(self, rank: int) -> float:
        """When the input of a rank's next forward is there; it counts as there if still to come."""
        index = len(self._forward_ends[rank])
        if rank == 0 or index >= len(self._forward_ends[rank - 1]):
            return 0.0
        return self._forward_ends[rank - 1][index] + self._times.hop[rank - 1]

    def _forward(self, rank: int) -> None:
        self._wait(rank, self._forward_arrival(rank))
        self._now[rank] += self._times.forward[rank]
        self._held[rank] += 1
        self._forward_ends[rank].append(self._now[rank])
        self.kinds[rank].append(F)

    def _backward(self, rank: int) -> None:
        index, share = len(self._backward_ends[rank]), self._times.share[rank]
        if rank == self._ranks - 1:
            arrival = self._forward_ends[rank][index]
        else:
            arrival = self._backward_ends[rank + 1][index] + self._times.hop[rank + 1]
        if rank == 0 and len(self._forward_ends[0]) == self._microbatches:
            self._run_weights(0, self._pending[0])  # nobody waits for what rank 0 does next
        self._prepare(rank, arrival, share - 1)
        self._wait(rank, arrival)
        self._now[rank] += self._times.inputs[rank]
        self._held[rank] += share - 1
        self._pending[rank] += 1
        self._backward_ends[rank].append(self._now[rank])
        self.kinds[rank].append(B)

    def _prepare(self, rank: int, arrival: float, more: float) -> None:
        """Run weight gradients that memory asks for, or that fit into the wait for an input."""
        times = self._times
        while self._pending[rank] and self._held[rank] + more > self._limit:
            self._run_weights(rank, 1)
        while (
            self._pending[rank] and self._now[rank] + times.weights[rank] <= arrival + times.slack
        ):
            self._run_weights(rank, 1)
        gap = arrival - self._now[rank]
        allowed = 0.0 if self._variant.fill_all else self._most_waited - self._waited[rank]
        if self._pending[rank] and gap > max(allowed, 0.0) + times.slack:
            self._run_weights(rank, 1)

    def _run_weights(self, rank: int, count: int) -> None:
        self._now[rank] += count * self._times.weights[rank]
        self._held[rank] -= count * self._times.share[rank]
        self._pending[rank] -= count
        self.kinds[rank].extend([W] * count)

    def _wait(self, rank: int, arrival: float) -> None:
        gap = arrival - self._now[rank]
        if gap > 0:
            self._now[rank] = arrival
            self._waited[rank] += gap
            self._most_waited = max(self._most_waited, self._waited[rank])
