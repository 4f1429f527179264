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

    An index counts as known up to the highest one that has at least half of its computations.

    Raises:
        IncompleteSchedule: there is none, or an action has an index beyond them.
    """
    counts = Counter(chain.from_iterable(map(microbatches_of, schedule.actions)))
    full = schedule.num_stages * (1 if schedule.forward_only else 2)
    known = 1 + max((index for index, count in counts.items() if 2 * count >= full), default=-1)
    if not counts:
        raise IncompleteSchedule("a schedule must hold at least one microbatch, but holds none.")
    if known < schedule.num_microbatches:
        _refuse_stray(schedule, known)


def require_complete(ledger: Ledger) -> None:
    """Check that no computation is missing, and no reduction where there are any.

    Raises:
        IncompleteSchedule: one is missing, or a forward-only schedule has a backward.
        DependencyViolation: a reduction stands before a backward of its stage.
    """
    schedule, where = ledger.schedule, ledger.where
    per_kind = schedule.num_stages * schedule.num_microbatches
    if schedule.forward_only:
        found = max(where[per_kind : 3 * per_kind])
        if found > NOWHERE:
            rank, step = ledger.place(found)
            message = "a forward-only schedule must hold no backward, but holds one. Take it out."
            raise _incomplete(schedule, message, rank, step, schedule.actions[rank][step])
    required = per_kind if schedule.forward_only else 3 * per_kind
    if NOWHERE in where[:required]:
        _refuse_missing(ledger, where.index(NOWHERE, 0, required))
    if ledger.reductions:
        _require_reductions(ledger)


def _refuse_stray(schedule: AnySchedule, known: int) -> NoReturn:
    for rank, row in enumerate(schedule.actions):
        for step, action in enumerate(row):
            if any(p.microbatch >= known for p in parts(action) if isinstance(p, Compute)):
                rule = f"have a microbatch below {known}" if known else "be of a whole microbatch"
                message = (
                    f"action {action} must {rule}, for most of the rest of its microbatch is "
                    "missing. Take it out, or complete it."
                )
                raise _incomplete(schedule, message, rank, step, action)
    raise AssertionError


def _refuse_missing(ledger: Ledger, slot: int) -> NoReturn:
    """Name what is missing, at the step of what lacks it, or behind the end of the list."""
    schedule, slots = ledger.schedule, ledger.slots
    need, microbatch = slots.meaning(slot)
    here = {
        left: ledger.where[slots.base_of(Need(need.stage, left)) + microbatch]
        for left in (ACTIVATION, INPUT_GRADIENT, WEIGHT_GRADIENT)
    }
    kind, lacking = ActionKind.F, here[INPUT_GRADIENT]
    if need.kinds == INPUT_GRADIENT:
        has_weight = here[WEIGHT_GRADIENT] > NOWHERE
        kind = ActionKind.B if has_weight else ActionKind.BW
        lacking = here[WEIGHT_GRADIENT] if has_weight else here[ACTIVATION]
    elif need.kinds == WEIGHT_GRADIENT:
        kind, lacking = ActionKind.W, here[INPUT_GRADIENT]
    action = Compute(need.stage, kind, microbatch)
    rank = schedule.rank_of(need.stage, microbatch)
    step = len(schedule.actions[rank]) if lacking == NOWHERE else ledger.place(lacking)[1]
    message = f"every stage must run every microbatch once, but {action} is missing. Add it."
    raise _incomplete(schedule, message, rank, step, action)


def _require_reductions(ledger: Ledger) -> None:
    schedule = ledger.schedule
    for stage, rank in enumerate(schedule.placement):
        step = ledger.reductions.get((stage, rank))
        row = schedule.actions[rank]
        if step is None:
            message = "every stage must be reduced where one is, but this one is not. Add it."
            raise _incomplete(schedule, message, rank, len(row), Reduce(stage))
        first = ledger.slots.base_of(Need(stage, WEIGHT_GRADIENT))
        last = max(ledger.where[first : first + schedule.num_microbatches])
        if ledger.place(last) > (rank, step):
            raise too_early(schedule.actions, rank, step, [row[ledger.place(last)[1]]])


def _incomplete(
    schedule: AnySchedule, message: str, rank: int, step: int, action: Action
) -> IncompleteSchedule:
    return fault(IncompleteSchedule, schedule.actions, message, rank=rank, step=step, action=action)
