"""Placement: which pipeline rank owns which stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import final

from ppframe.errors import ScheduleError


@final
@dataclass(frozen=True, slots=True)
class Placement(Sequence[int]):
    """The rank of each stage; a sequence, so `placement[5]` is the rank that owns stage 5.

    ::

        loop   rank  0  1  2  3         V   rank  0  1  2  3
                     0  1  2  3                   0  1  2  3
                     4  5  6  7                   7  6  5  4

    Args:
        owners: rank of each stage, in the order of stages; every rank from 0 up has a stage.

    Raises:
        ScheduleError: there is no stage, or a rank that has none.

    Example:
        >>> Placement.loop(ranks=2, chunks_per_rank=2).owners
        (0, 1, 0, 1)
        >>> Placement.v(ranks=2, chunks_per_rank=2).owners
        (0, 1, 1, 0)
    """

    owners: tuple[int, ...]
    ranks: int = field(init=False, compare=False)
    mirrored: tuple[int, ...] = field(init=False, compare=False, repr=False)
    """Rank of each stage for a second chain, which runs the other way: P - 1 - owner."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "owners", tuple(self.owners))
        used = set(self.owners)
        if not used or used != set(range(len(used))):
            raise ScheduleError(
                f"a placement must give a stage to every rank from 0 up, but uses the ranks "
                f"{sorted(used)[:8]} (stages {len(self.owners)})."
            )
        object.__setattr__(self, "ranks", len(used))
        object.__setattr__(self, "mirrored", tuple([len(used) - 1 - r for r in self.owners]))

    @classmethod
    def loop(cls, ranks: int, chunks_per_rank: int = 1) -> Placement:
        """Stage s on rank s mod P: every chunk starts again at rank 0."""
        return cls(tuple(range(ranks)) * chunks_per_rank)

    @classmethod
    def v(cls, ranks: int, chunks_per_rank: int = 2) -> Placement:
        """There and back: odd chunks run down the ranks, so the turns stay on one rank."""
        there = tuple(range(ranks))
        return cls(
            tuple(r for chunk in range(chunks_per_rank) for r in there[:: -1 if chunk % 2 else 1])
        )

    @property
    def num_stages(self) -> int:
        """How many stages there are."""
        return len(self.owners)

    @property
    def chunks_per_rank(self) -> int:
        """How many stages a rank owns; the largest number, where they differ."""
        return max(self.owners.count(rank) for rank in range(self.ranks))

    def stages_of(self, rank: int) -> tuple[int, ...]:
        """The stages of a rank, in forward order."""
        return tuple(stage for stage, owner in enumerate(self.owners) if owner == rank)

    def __len__(self) -> int:
        return len(self.owners)

    def __getitem__(self, stage: int) -> int:  # type: ignore[override]
        return self.owners[stage]

    def __iter__(self) -> Iterator[int]:
        return iter(self.owners)
