"""Owners: where stages lie and which chain microbatches take, seen from a table of actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple, NoReturn, final

from ppframe.errors import ScheduleSyntaxError
from ppframe.schedule.action import Action, Compute, parts
from ppframe.schedule.placement import Placement


@final
class Cell(NamedTuple):
    """An action and the column of its line where it begins, from 1."""

    action: Action
    column: int


Table = list[list[Cell]]
"""For each rank its cells."""
Owners = Mapping[int, int]
"""Stage → rank."""


def owners_of(table: Table) -> tuple[Placement, tuple[int, ...]]:
    """Which rank owns which stage, and the chain of each microbatch; empty where there is one.

    Args:
        table: what stands in a text, not verified; every rank has an action.

    Raises:
        ScheduleSyntaxError: stages have gaps, a rank owns none, or an action stands on a rank that
            its stage, or the chain of its microbatch, doesn't lie on.
    """
    counts: dict[int, Counter[int]] = {}
    for (rank, _, _), part in _computations(table):
        counts.setdefault(part.stage, Counter())[rank] += 1
    placement = None
    if any(len(ranks) > 1 for ranks in counts.values()):
        placement = _placement_of_two_chains(table)
    if placement is None:
        owners = {stage: ranks.most_common(1)[0][0] for stage, ranks in counts.items()}
        _require_owners(table, owners)
        return Placement(tuple(owners[stage] for stage in range(len(owners)))), ()
    chains = _chains(table, placement)
    _require_chains(table, placement, chains)
    # Only as many as there are: a stray number must not make a table of its size.
    return placement, tuple(chains.get(microbatch, 0) for microbatch in range(len(chains)))


def refuse_cell(cell: Cell, rank: int, step: int, *, rule: str, change: str) -> NoReturn:
    """Refuse an action that stands where it must not.

    Raises:
        ScheduleSyntaxError: always.
    """
    raise ScheduleSyntaxError(
        f"line {rank + 1}, column {cell.column}: an action must {rule}, but `{cell.action}` stands "
        f"on rank {rank}, step {step}. {change}",
        line=rank + 1,
        column=cell.column,
        rank=rank,
        step=step,
        action=cell.action,
    )


def _cells(table: Table) -> Iterator[tuple[int, int, Cell]]:
    """Rank, step and cell, for all in the table."""
    for rank, row in enumerate(table):
        for step, cell in enumerate(row):
            yield rank, step, cell


def _computations(table: Table) -> Iterator[tuple[tuple[int, int, Cell], Compute]]:
    """Place and computation, for all in the table; pairs come apart."""
    for place in _cells(table):
        for part in parts(place[2].action):
            if type(part) is Compute:
                yield place, part


def _placement_of_two_chains(table: Table) -> Placement | None:
    """Where chain 0 has its stages; None where no two chains can be seen.

    Whole microbatches, with every stage on one rank of its own, show a chain; a chain counts with
    its mirror image, and of several such pairs the one that most microbatches take.
    """
    ranks = len(table)
    homes: dict[int, dict[int, int]] = {}
    strewn = set()
    for (rank, _, _), part in _computations(table):
        if homes.setdefault(part.microbatch, {}).setdefault(part.stage, rank) != rank:
            strewn.add(part.microbatch)
    seen: Counter[tuple[int, ...]] = Counter()
    for microbatch, home in homes.items():
        if microbatch not in strewn and home.keys() == set(home.values()) == set(range(ranks)):
            seen[tuple(home[stage] for stage in range(ranks))] += 1
    pairs: Counter[Placement] = Counter()
    for owners, count in seen.items():
        mirrored = Placement(owners).mirrored
        if mirrored in seen and mirrored != owners:
            pairs[Placement(min(owners, mirrored))] += count
    return min(pairs, key=lambda pair: (-pairs[pair], pair.owners), default=None)


def _chains(table: Table, placement: Placement) -> dict[int, int]:
    """The chain on which more of a microbatch runs; of two equal ones chain 0."""
    leads: Counter[int] = Counter()
    for (rank, _, _), part in _computations(table):
        on_chain = [
            part.stage < len(owners) and owners[part.stage] == rank
            for owners in (placement.owners, placement.mirrored)
        ]
        leads[part.microbatch] += on_chain[1] - on_chain[0]
    return {microbatch: int(lead > 0) for microbatch, lead in leads.items()}


def _require_owners(table: Table, owners: Owners) -> None:
    """Check that stages have no gaps, computations their rank, and ranks a stage."""
    _require_stages(table, len(owners))
    for (rank, step, cell), part in _computations(table):
        if owners[part.stage] != rank:
            rule = f"stand on one rank with the rest of stage {part.stage}"
            change = f"That is rank {owners[part.stage]}."
            refuse_cell(cell, rank, step, rule=rule, change=change)
    for rank, row in enumerate(table):
        if rank not in owners.values():
            rule = "be on a rank that owns a stage"
            refuse_cell(row[0], rank, 0, rule=rule, change="Take the line out.")


def _require_chains(table: Table, placement: Placement, chains: Mapping[int, int]) -> None:
    """Check that stages have no gaps, and every microbatch stays on its chain."""
    _require_stages(table, placement.num_stages)
    both = placement.owners, placement.mirrored
    for (rank, step, cell), part in _computations(table):
        owner = both[chains[part.microbatch]][part.stage]
        if owner != rank:
            rule = f"stand on one chain of ranks with the rest of microbatch {part.microbatch}"
            change = f"There stage {part.stage} lies on rank {owner}."
            refuse_cell(cell, rank, step, rule=rule, change=change)


def _require_stages(table: Table, num_stages: int) -> None:
    """Check that all cells are of stages that are computed."""
    for rank, step, cell in _cells(table):
        if any(part.stage >= num_stages for part in parts(cell.action)):
            rule = f"be of a stage from 0 to {num_stages - 1}, as there are {num_stages}"
            refuse_cell(cell, rank, step, rule=rule, change="Number the stages without gaps.")
