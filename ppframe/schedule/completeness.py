"""Completeness: every computation once, on its rank, for every stage and microbatch."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import NoReturn

from ppframe.errors import IncompleteSchedule, ScheduleError
from ppframe.schedule.action import Action, ActionKind, Compute, Overlap, Reduce, parts
from ppframe.schedule.dependencies import ACTIVATION, INPUT_GRADIENT, WEIGHT_GRADIENT, Need
from ppframe.schedule.faults import fault, too_early
from ppframe.schedule.ir import AnySchedule, microbatches_of
from ppframe.schedule.ledger import NOWHERE, Ledger


def require_computations(schedule: AnySchedule) -> None:
    """Check that a compute-only schedule holds nothing else.

    Raises:
        ScheduleError: it holds communication or a reduction.
    """
    for rank, row in enumerate(schedule.actions):
        for step, action in enumerate(row):
            if not isinstance(action, Compute | Overlap):
                message = (
                    f"a compute-only schedule must hold computations only, but holds {action}. "
                    "Make it a LoweredSchedule."
                )
                raise fault(
                    ScheduleError, schedule.actions, message, rank=rank, step=step, action=action
                )


def require_known_microbatches(schedule: AnySchedule) -> None:
    """Check that microbatches are numbered without gaps, before tables of that size are made.

    Raises:
        IncompleteSchedule: there is none; one is missing; or an action has an index beyond them,
            for most of the rest of its microbatch is missing.
    """
    counts = Counter(chain.from_iterable(map(microbatches_of, schedule.actions)))
    if not counts:
        raise IncompleteSchedule("a schedule must hold at least one microbatch, but holds none.")
    least = schedule.num_stages * (1 if schedule.forward_only else 2)
    gap = next(index for index in range(len(counts) + 1) if index not in counts)
    if gap < len(counts):
        strays = {index for index, count in counts.items() if index > gap and count < least}
        _refuse_strays(schedule, strays, gap)
        _refuse_missing(schedule, Compute(0, ActionKind.F, gap))
    halves = [index for index, count in counts.items() if 2 * count >= least]
    if not halves:
        _refuse_missing(schedule, _first_absent(schedule))
    _refuse_strays(schedule, set(range(max(halves) + 1, len(counts))), max(halves) + 1)


def require_complete(ledger: Ledger) -> None:
    """Check that no computation is missing, and no reduction where there are any.

    Raises:
        IncompleteSchedule: one is missing, or a forward-only schedule has a backward.
        DependencyViolation: a reduction stands before a backward of its stage.
    """
    schedule, where = ledger.schedule, ledger.where
    per_kind = schedule.num_stages * schedule.num_microbatches
    if schedule.forward_only:
        _require_no_backward(ledger, max(where[per_kind : 3 * per_kind]))
    required = per_kind if schedule.forward_only else 3 * per_kind
    if NOWHERE in where[:required]:
        missing, lacking = _missing_of(ledger, where.index(NOWHERE, 0, required))
        _refuse_missing(schedule, missing, None if lacking == NOWHERE else ledger.place(lacking)[1])
    if ledger.reductions:
        _require_reductions(ledger)


def _require_no_backward(ledger: Ledger, backward: int) -> None:
    """Check a forward-only schedule; `backward` is the position of its last backward, if any."""
    rank, step = ledger.place(backward)
    if backward == NOWHERE:
        if not ledger.reductions:
            return
        (_, rank), step = next(iter(ledger.reductions.items()))
    message = "a forward-only schedule must hold forwards only, but holds this. Take it out."
    action = ledger.schedule.actions[rank][step]
    raise _incomplete(ledger.schedule, message, rank, step, action)


def _refuse_strays(schedule: AnySchedule, strays: set[int], known: int) -> None:
    """Refuse the first action of one of these microbatches, if there are any."""
    for rank, row in enumerate(schedule.actions if strays else ()):
        step = next(
            (step for step, a in enumerate(row) if strays & set(microbatches_of([a]))), None
        )
        if step is not None:
            message = (
                f"action {row[step]} must have a microbatch below {known}, for most of the rest of "
                "its microbatch is missing. Take it out, or complete it."
            )
            raise _incomplete(schedule, message, rank, step, row[step])


def _missing_of(ledger: Ledger, slot: int) -> tuple[Compute, int]:
    """What is missing from a slot, and the position of the action that lacks it."""
    need, microbatch = ledger.slots.meaning(slot)
    forward, gradient, weight = (
        ledger.where[ledger.slots.base_of(Need(need.stage, left)) + microbatch]
        for left in (ACTIVATION, INPUT_GRADIENT, WEIGHT_GRADIENT)
    )
    if need.kinds == ACTIVATION:
        return Compute(need.stage, ActionKind.F, microbatch), gradient
    if need.kinds == WEIGHT_GRADIENT:
        return Compute(need.stage, ActionKind.W, microbatch), gradient
    if weight > NOWHERE:
        return Compute(need.stage, ActionKind.B, microbatch), weight
    return Compute(need.stage, ActionKind.BW, microbatch), forward


def _first_absent(schedule: AnySchedule) -> Compute:
    """The forward of microbatch 0 on the first stage that has nothing of it."""
    actions = chain.from_iterable(schedule.actions)
    singles = [part for a in actions for part in parts(a) if isinstance(part, Compute)]
    present = {part.stage for part in singles if part.microbatch == 0}
    stage = next(stage for stage in range(schedule.num_stages) if stage not in present)
    return Compute(stage, ActionKind.F, 0)


def _refuse_missing(schedule: AnySchedule, action: Compute, step: int | None = None) -> NoReturn:
    """Refuse a list that lacks an action, at a step or behind its end."""
    rank = schedule.rank_of(action.stage, action.microbatch)
    at = len(schedule.actions[rank]) if step is None else step
    message = f"every stage must run every microbatch once, but {action} is missing. Add it."
    raise _incomplete(schedule, message, rank, at, action)


def _require_reductions(ledger: Ledger) -> None:
    """Check that each copy of a stage is reduced once, after its last backward."""
    schedule = ledger.schedule
    for owners, microbatches in ledger.chains.items():
        for stage, rank in enumerate(owners):
            step = ledger.reductions.get((stage, rank))
            row = schedule.actions[rank]
            if step is None:
                message = "every stage must be reduced where one is, but this one is not. Add it."
                raise _incomplete(schedule, message, rank, len(row), Reduce(stage))
            first = ledger.slots.base_of(Need(stage, WEIGHT_GRADIENT))
            last = max(ledger.where[first + microbatch] for microbatch in microbatches)
            if ledger.place(last) > (rank, step):
                raise too_early(schedule.actions, rank, step, [row[ledger.place(last)[1]]])


def _incomplete(
    schedule: AnySchedule, message: str, rank: int, step: int, action: Action
) -> IncompleteSchedule:
    return fault(IncompleteSchedule, schedule.actions, message, rank=rank, step=step, action=action)
