"""Ledger: where everything that a schedule leaves behind is made; each thing at most once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NoReturn, final

from ppframe.errors import (
    IncompleteSchedule,
    ScheduleError,
    UnmatchedTransfer,
)
from ppframe.schedule.action import (
    OTHER_END,
    SEND_KINDS,
    Action,
    ActionKind,
    Compute,
    Exchange,
    Overlap,
    Reduce,
    Transfer,
)
from ppframe.schedule.dependencies import Need
from ppframe.schedule.faults import fault, too_early
from ppframe.schedule.ir import AnySchedule, LoweredSchedule, is_carried
from ppframe.schedule.slots import Slots

NOWHERE: Final = -1
"""Position of what no action leaves."""
_REMOTE: Final = (ActionKind.RECV_F, ActionKind.RECV_B)


@final
class Ledger:
    """The position of every action, found in one pass over the lists.

    Args:
        schedule: the schedule; its microbatches are known to be numbered without gaps.

    Raises:
        IncompleteSchedule: a computation or reduction stands twice, or an action is of a stage or
            microbatch that there isn't, or on a rank that doesn't own its stage.
        UnmatchedTransfer: a transfer stands twice.
    """

    def __init__(self, schedule: AnySchedule) -> None:
        self.schedule = schedule
        self.slots = Slots(
            schedule.num_stages,
            schedule.num_microbatches,
            lambda stage: is_carried(schedule, stage),
        )
        self.where = [NOWHERE] * self.slots.count
        """Slot → position of the action that leaves it, or `NOWHERE`."""
        self.reductions: dict[tuple[int, int], int] = {}
        """(stage, rank) → step of the reduction."""
        self._early: tuple[int, int, int] | None = None
        self.stride = 1 + max(map(len, schedule.actions))
        self._owners = [schedule.owners(m) for m in range(schedule.num_microbatches)]
        self.chains: dict[tuple[int, ...], list[int]] = {}
        """Rank of each stage → the microbatches that have them there."""
        for microbatch, owners in enumerate(self._owners):
            self.chains.setdefault(owners, []).append(microbatch)
        self._local = self._local_needs()
        for rank in range(schedule.ranks):
            self._enter(rank)

    def place(self, position: int) -> tuple[int, int]:
        """Rank and step of a position."""
        return divmod(position, self.stride)

    def action(self, position: int) -> Action:
        """The action at a position."""
        rank, step = self.place(position)
        return self.schedule.actions[rank][step]

    def positions(self, kind: ActionKind, stage: int) -> list[int]:
        """Positions of what a kind leaves on a stage, by microbatch."""
        base = self.slots.base_of(Need(stage, (kind,)))
        return self.where[base : base + self.schedule.num_microbatches]

    def position(self, action: Compute | Transfer) -> int:
        """Position of what an action leaves; also for an action that the schedule hasn't."""
        base = self.slots.base_of(Need(action.stage, (action.kind,)))
        return self.where[base + action.microbatch]

    def mates(self) -> tuple[list[int], bytearray]:
        """Position → position of the mate of a transfer; and whether a send is at a position.

        Of a schedule whose messages have two ends each.
        """
        mates = [NOWHERE] * (self.stride * self.schedule.ranks)
        sends = bytearray(len(mates))
        for send in SEND_KINDS:
            for sent, received in self.messages(send):
                mates[sent], mates[received], sends[sent] = received, sent, True
        return mates, sends

    def messages(self, send: ActionKind) -> Iterator[tuple[int, int]]:
        """Positions of the two ends of every message in one direction."""
        receive, offset = OTHER_END[send]
        for stage in range(max(0, -offset), self.schedule.num_stages - max(0, offset)):
            ends = self.positions(send, stage), self.positions(receive, stage + offset)
            yield from (pair for pair in zip(*ends, strict=True) if NOWHERE not in pair)

    def require_local_order(self) -> None:
        """Check that what a lowered schedule's actions need of their own rank stands before them.

        Raises:
            DependencyViolation: the first action for which it doesn't.
        """
        if self._early is not None:
            rank, step, slot = self._early
            raise too_early(self.schedule.actions, rank, step, [self.action(self.where[slot])])

    def _local_needs(self) -> dict[ActionKind, list[tuple[int, ...]]]:
        """Kind → stage → first slots of what it needs of its own rank, as far as is seen here.

        In a compute-only schedule, where the walk looks at all needs, nothing.
        """
        nothing: list[tuple[int, ...]] = [()] * self.schedule.num_stages
        lowered = isinstance(self.schedule, LoweredSchedule)
        return {
            kind: needed if lowered and kind not in _REMOTE else nothing
            for kind, needed in self.slots.needed_by.items()
        }

    def _enter(self, rank: int) -> None:
        where, left, needed, owners = self.where, self.slots.left_by, self._local, self._owners
        num_stages, num_microbatches = self.schedule.num_stages, self.schedule.num_microbatches
        steps, singles = self._unpacked(rank)
        for step, (stage, kind, m) in zip(steps, singles, strict=True):
            if m >= num_microbatches or stage >= num_stages or owners[m][stage] != rank:
                self._refuse_place(rank, step)
            for base in needed[kind][stage]:
                if where[base + m] == NOWHERE and self._early is None:
                    self._early = (rank, step, base + m)
            for base in left[kind][stage]:
                if where[base + m] != NOWHERE:
                    self._refuse_twice(rank, step, where[base + m])
                where[base + m] = rank * self.stride + step

    def _unpacked(self, rank: int) -> tuple[Iterable[int], Sequence[Compute | Transfer]]:
        """A rank's single actions and their steps; pairs come apart, reductions are entered."""
        row = self.schedule.actions[rank]
        single = [action for action in row if type(action) is Compute or type(action) is Transfer]
        if len(single) == len(row):
            return range(len(row)), single
        unpacked: list[tuple[int, Compute | Transfer]] = []
        for step, action in enumerate(row):
            if isinstance(action, Reduce):
                self._enter_reduction(rank, step, action)
            elif isinstance(action, Overlap | Exchange):
                unpacked += [(step, action[0]), (step, action[1])]
            else:
                assert isinstance(action, Compute | Transfer)  # there is no other class
                unpacked.append((step, action))
            if isinstance(action, Overlap):
                self._note_dependent(rank, step, action)
        return [step for step, _ in unpacked], [part for _, part in unpacked]

    def _note_dependent(self, rank: int, step: int, pair: Overlap) -> None:
        """Note a pair whose second action needs its first: they can't run at once."""
        first, second = pair
        left, needed = self.slots.left_by[first.kind], self._local[second.kind]
        made = {base + first.microbatch for base in left[first.stage]}
        for base in needed[second.stage]:
            if base + second.microbatch in made and self._early is None:
                self._early = (rank, step, base + second.microbatch)

    def _enter_reduction(self, rank: int, step: int, action: Reduce) -> None:
        if action.stage >= self.schedule.num_stages or rank not in {
            owners[action.stage] for owners in self.chains
        }:
            self._refuse_place(rank, step)
        if (action.stage, rank) in self.reductions:
            first = rank * self.stride + self.reductions[action.stage, rank]
            self._refuse_twice(rank, step, first)
        self.reductions[action.stage, rank] = step

    def _refuse_place(self, rank: int, step: int) -> NoReturn:
        schedule = self.schedule
        action = schedule.actions[rank][step]
        message = (
            f"action {action} must be of one of the {schedule.num_stages} stages and "
            f"{schedule.num_microbatches} microbatches, and on the rank that owns its stage "
            f"(stages of rank {rank}: {self._stages_of(rank)}). "
            "Move it or take it out."
        )
        self._raise(IncompleteSchedule, message, rank, step)

    def _stages_of(self, rank: int) -> str:
        """The stages that a rank owns, in words; with two chains also on which."""
        schedule = self.schedule
        owned = ", ".join(map(str, schedule.placement.stages_of(rank)))
        if not schedule.chains:
            return owned
        return f"{owned} on chain 0, {schedule.placement.mirrored.index(rank)} on chain 1"

    def _refuse_twice(self, rank: int, step: int, first: int) -> NoReturn:
        other_rank, other_step = self.place(first)
        action = self.schedule.actions[rank][step]
        message = (
            f"action {action} must be the only one of its kind for its stage and microbatch, but "
            f"{self.action(first)} stands on rank {other_rank}, step {other_step}. Take one out."
        )
        is_transfer = isinstance(action, Transfer | Exchange)
        error = UnmatchedTransfer if is_transfer else IncompleteSchedule
        self._raise(error, message, rank, step)

    def _raise(self, kind: type[ScheduleError], message: str, rank: int, step: int) -> NoReturn:
        rows = self.schedule.actions
        raise fault(kind, rows, message, rank=rank, step=step, action=rows[rank][step])
