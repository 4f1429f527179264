"""Schedule and LoweredSchedule: which stage computes which microbatch when, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import final

from ppframe.errors import ScheduleError
from ppframe.schedule.action import OTHER_END, Action, Compute, Exchange, Overlap, Transfer
from ppframe.schedule.dialects import Dialect
from ppframe.schedule.placement import Placement
from ppframe.schedule.rows import Rows, read_file, read_rows, write_rows


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """A compute-only schedule: for each rank the actions it runs, in order.

    Args:
        actions: for each rank its actions.
        placement: rank of each stage; of chain 0, where there are two.
        name: what it is called, such as the name of its generator.
        forward_only: whether it has forwards only, as for evaluation.
        chains: for each microbatch the chain it takes, 0 or 1; empty where all take chain 0. On
            chain 1, which runs the other way, stage s lies on rank P - 1 - placement[s].

    Raises:
        ScheduleError: the number of ranks isn't that of the placement; there is a second chain
            where ranks have more than one stage; or a chain is neither 0 nor 1.

    Example:
        >>> one = Schedule(((Action.parse("0F0"), Action.parse("0BW0")),), Placement.loop(1))
        >>> one.ranks, one.num_stages, one.num_microbatches, one.rank_of(0, 0)
        (1, 1, 1, 0)
    """

    actions: Rows
    placement: Placement
    name: str = field(default="", compare=False)
    forward_only: bool = False
    chains: tuple[int, ...] = ()
    num_microbatches: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _settle(self)

    @property
    def ranks(self) -> int:
        """Number of pipeline ranks (P)."""
        return self.placement.ranks

    @property
    def num_stages(self) -> int:
        """Number of stages (S)."""
        return self.placement.num_stages

    @property
    def chunks_per_rank(self) -> int:
        """Stages of each rank (V)."""
        return self.placement.chunks_per_rank

    def chain(self, microbatch: int) -> int:
        """Which of the model's two chains through the ranks a microbatch takes, 0 or 1."""
        return self.chains[microbatch] if microbatch < len(self.chains) else 0

    def owners(self, microbatch: int) -> tuple[int, ...]:
        """The rank of each stage for a microbatch."""
        return self.placement.mirrored if self.chain(microbatch) else self.placement.owners

    def rank_of(self, stage: int, microbatch: int) -> int:
        """The rank on which a stage runs for a microbatch."""
        return self.owners(microbatch)[stage]

    def to_text(self, dialect: Dialect = "ppframe") -> str:
        """The CSV text: a line per rank, a cell per action.

        Raises:
            ScheduleError: the dialect is unknown, or has no word for an action.
        """
        return write_rows(self.actions, dialect)

    def to_csv(self, path: str | PathLike[str], *, dialect: Dialect = "ppframe") -> None:
        """Write the CSV text to a file.

        Raises:
            ScheduleError: as `to_text`.
        """
        Path(path).write_text(self.to_text(dialect), encoding="utf-8", newline="\n")

    @classmethod
    def from_text(
        cls, text: str, *, dialect: Dialect = "ppframe", name: str = "", forward_only: bool = False
    ) -> Schedule:
        """The schedule of a CSV text; not verified yet.

        Args:
            text: a line per rank, a cell per action; empty cells are skipped.
            dialect: letters of the text: ours, or torch's.
            name: what it shall be called.
            forward_only: whether the text has forwards only.

        Raises:
            ScheduleSyntaxError: the text is no schedule; names line and column.
        """
        rows, placement, chains = read_rows(text, dialect, compute_only=True)
        return cls(rows, placement, name, forward_only, chains)

    @classmethod
    def from_csv(
        cls, path: str | PathLike[str], *, dialect: Dialect = "ppframe", forward_only: bool = False
    ) -> Schedule:
        """The schedule of a file, named as the file is; not verified yet.

        Raises:
            ScheduleSyntaxError: as `from_text`.
            OSError: the file can't be read.
        """
        name, text = Path(path).stem, read_file(path)
        return cls.from_text(text, dialect=dialect, name=name, forward_only=forward_only)


@final
@dataclass(frozen=True, slots=True)
class LoweredSchedule:
    """A schedule with communication and reduction placed: the thing that is executed.

    Args:
        actions: for each rank its actions.
        placement: rank of each stage; of chain 0, where there are two.
        name: what it is called.
        forward_only: whether it has forwards only, as for evaluation.
        chains: for each microbatch the chain it takes, as in `Schedule`.

    Raises:
        ScheduleError: as `Schedule`.
    """

    actions: Rows
    placement: Placement
    name: str = field(default="", compare=False)
    forward_only: bool = False
    chains: tuple[int, ...] = ()
    num_microbatches: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _settle(self)

    @property
    def ranks(self) -> int:
        """Number of pipeline ranks (P)."""
        return self.placement.ranks

    @property
    def num_stages(self) -> int:
        """Number of stages (S)."""
        return self.placement.num_stages

    @property
    def chunks_per_rank(self) -> int:
        """Stages of each rank (V)."""
        return self.placement.chunks_per_rank

    def chain(self, microbatch: int) -> int:
        """Which of the model's two chains through the ranks a microbatch takes, 0 or 1."""
        return self.chains[microbatch] if microbatch < len(self.chains) else 0

    def owners(self, microbatch: int) -> tuple[int, ...]:
        """The rank of each stage for a microbatch."""
        return self.placement.mirrored if self.chain(microbatch) else self.placement.owners

    def rank_of(self, stage: int, microbatch: int) -> int:
        """The rank on which a stage runs for a microbatch."""
        return self.owners(microbatch)[stage]

    def to_text(self, dialect: Dialect = "ppframe") -> str:
        """The CSV text: a line per rank, a cell per action.

        Raises:
            ScheduleError: the dialect is unknown, or has no word for an action.
        """
        return write_rows(self.actions, dialect)

    def to_csv(self, path: str | PathLike[str], *, dialect: Dialect = "ppframe") -> None:
        """Write the CSV text to a file.

        Raises:
            ScheduleError: as `to_text`.
        """
        Path(path).write_text(self.to_text(dialect), encoding="utf-8", newline="\n")

    @classmethod
    def from_text(
        cls, text: str, *, dialect: Dialect = "ppframe", name: str = "", forward_only: bool = False
    ) -> LoweredSchedule:
        """The schedule of a CSV text; not verified yet.

        Args:
            text: a line per rank, a cell per action; empty cells are skipped.
            dialect: letters of the text: ours, or torch's.
            name: what it shall be called.
            forward_only: whether the text has forwards only.

        Raises:
            ScheduleSyntaxError: the text is no schedule; names line and column.
        """
        rows, placement, chains = read_rows(text, dialect, compute_only=False)
        return cls(rows, placement, name, forward_only, chains)

    @classmethod
    def from_csv(
        cls, path: str | PathLike[str], *, dialect: Dialect = "ppframe", forward_only: bool = False
    ) -> LoweredSchedule:
        """The schedule of a file, named as the file is; not verified yet.

        Raises:
            ScheduleSyntaxError: as `from_text`.
            OSError: the file can't be read.
        """
        name, text = Path(path).stem, read_file(path)
        return cls.from_text(text, dialect=dialect, name=name, forward_only=forward_only)


AnySchedule = Schedule | LoweredSchedule


def is_carried(schedule: AnySchedule, stage: int) -> bool:
    """Whether transfers carry the boundary between this stage and the next.

    They do in a lowered schedule, where the two are on different ranks: on one chain as on the
    other, which is its mirror image.
    """
    owners = schedule.placement.owners
    return isinstance(schedule, LoweredSchedule) and owners[stage] != owners[stage + 1]


def peer_of(schedule: AnySchedule, action: Transfer | Exchange) -> int:
    """The rank at the other end of a message or exchange."""
    end = action.send if isinstance(action, Exchange) else action
    return schedule.rank_of(end.stage + OTHER_END[end.kind][1], end.microbatch)


def _settle(schedule: AnySchedule) -> None:
    """Make lists and placement what they are to be, check them, and count the microbatches."""
    if not isinstance(schedule.placement, Placement):
        object.__setattr__(schedule, "placement", Placement(tuple(schedule.placement)))
    rows = tuple(map(tuple, schedule.actions))
    object.__setattr__(schedule, "actions", rows)
    if len(rows) != schedule.placement.ranks:
        raise ScheduleError(
            f"a schedule must have a list of actions for each of the {schedule.placement.ranks} "
            f"ranks of its placement, but has {len(rows)}."
        )
    highest = max(max(microbatches_of(row), default=-1) for row in rows)
    object.__setattr__(schedule, "num_microbatches", highest + 1)
    object.__setattr__(schedule, "chains", _settled_chains(schedule))


def _settled_chains(schedule: AnySchedule) -> tuple[int, ...]:
    """The chains, checked; without the zeros at the end, so that equal ones compare equal."""
    chains = tuple(schedule.chains)[: schedule.num_microbatches]
    if not any(chains) or schedule.placement.mirrored == schedule.placement.owners:
        return ()
    if set(chains) - {0, 1}:
        wrong = next(chain for chain in chains if chain not in (0, 1))
        raise ScheduleError(f"the chain of a microbatch must be 0 or 1, but is {wrong!r}.")
    if schedule.num_stages != schedule.ranks:
        raise ScheduleError(
            f"a schedule of two chains must have one stage for each rank, but has "
            f"{schedule.num_stages} stages on {schedule.ranks} ranks."
        )
    return chains[: max(index for index, chain in enumerate(chains) if chain) + 1]


def microbatches_of(row: Sequence[Action]) -> list[int]:
    """The microbatch of every computation in a list, without order."""
    single = [action[2] for action in row if type(action) is Compute]
    pairs = [action for action in row if type(action) is Overlap]
    return single + [part.microbatch for pair in pairs for part in pair]
