"""Chunk and chain of each action of a timeline, which drawings tell apart by shade and pattern."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from ppframe.schedule.action import Compute, singles_of
from ppframe.simulator.timeline import TimelineEntry


@final
@dataclass(frozen=True, slots=True)
class Looks:
    """How the stages lie on the ranks, read off a timeline.

    Where microbatches go two ways through the ranks, the chain whose first stage lies on the lower
    rank is chain 0.

    Args:
        chunk_of: (chain, rank, stage) → which stage of the rank it is, from 0.
        reversed_microbatches: those of chain 1.
        num_microbatches: one more than the highest.
    """

    chunk_of: Mapping[tuple[int, int, int], int]
    reversed_microbatches: frozenset[int]
    num_microbatches: int

    @classmethod
    def of(cls, entries: Iterable[TimelineEntry]) -> Looks:
        """Looks of compute entries."""
        pairs = [(entry.rank, entry.action) for entry in entries]
        singles = [
            (rank, action[0], action[2]) for rank, action in pairs if type(action) is Compute
        ]
        singles += [
            (rank, stage, microbatch)
            for rank, action in pairs
            if type(action) is not Compute
            for stage, _, microbatch in singles_of(action)
        ]
        first = {microbatch: rank for rank, stage, microbatch in singles if stage == 0}
        lowest = min(first.values(), default=0)
        reverse = frozenset(microbatch for microbatch, rank in first.items() if rank != lowest)
        stages: dict[tuple[int, int], set[int]] = defaultdict(set)
        for chain, rank, stage in {(int(m in reverse), rank, stage) for rank, stage, m in singles}:
            stages[chain, rank].add(stage)
        chunk_of = {
            (chain, rank, stage): chunk
            for (chain, rank), of_rank in stages.items()
            for chunk, stage in enumerate(sorted(of_rank))
        }
        highest = max((microbatch for _, _, microbatch in singles), default=-1)
        return cls(chunk_of, reverse, highest + 1)

    @property
    def chunks(self) -> int:
        """Chunks of the rank that has most of them."""
        return 1 + max(self.chunk_of.values(), default=0)

    @property
    def chains(self) -> int:
        """1, or 2 where microbatches go two ways."""
        return 2 if self.reversed_microbatches else 1

    @property
    def count(self) -> int:
        """How many looks there are: a shade for each chunk of each chain."""
        return self.chunks * self.chains

    def chain(self, microbatch: int) -> int:
        """Which chain a microbatch takes."""
        return int(microbatch in self.reversed_microbatches)

    def chunk(self, rank: int, stage: int, microbatch: int) -> int:
        """Which of the rank's stages of this chain it is."""
        return self.chunk_of[self.chain(microbatch), rank, stage]

    def look(self, rank: int, stage: int, microbatch: int) -> int:
        """Number of the shade: chunk by chunk, chain 0 before chain 1."""
        chain = self.chain(microbatch)
        return chain * self.chunks + self.chunk_of[chain, rank, stage]

    def stages(self, rank: int) -> tuple[int, ...]:
        """Stages of a rank: in ascending order, those of chain 0 first."""
        keys = sorted(key for key in self.chunk_of if key[1] == rank)
        return tuple(stage for _, _, stage in keys)
