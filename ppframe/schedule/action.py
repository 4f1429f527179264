"""Actions: the entries of a schedule.

One class for each shape: a computation, a transfer, a reduction, and the two pairs. They are named
tuples rather than dataclasses, because a big schedule holds a million of them and a tuple is made
in a fifth of the time; they stay immutable, hashable and equal by value.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple, final

from ppframe.errors import ScheduleError, ScheduleSyntaxError

MAX_DIGITS: Final = 9
"""Digits that a stage or microbatch index may have in a text."""


@final
class ActionKind(Enum):
    """What an action does; the value is how it prints.

    F is the forward, B the backward for a stage's input, W the backward for its weights, BW both
    at once: the letters of the Zero Bubble paper. A transfer is named by the stage that runs it:
    stage s receives by RECV_F what stage s - 1 sends by SEND_F, and by RECV_B what stage s + 1
    sends by SEND_B.
    """

    F = "F"
    B = "B"
    W = "W"
    BW = "BW"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    REDUCE = "REDUCE"
    SEND_F_RECV_B = "SEND_F_RECV_B"
    SEND_B_RECV_F = "SEND_B_RECV_F"
    OVERLAP = "OVERLAP"

    # Members are singletons; hashing by identity instead of by name makes actions hash in C.
    __hash__ = object.__hash__


COMPUTE_KINDS: Final = frozenset({ActionKind.F, ActionKind.B, ActionKind.W, ActionKind.BW})
SEND_KINDS: Final = frozenset({ActionKind.SEND_F, ActionKind.SEND_B})
TRANSFER_KINDS: Final = SEND_KINDS | {ActionKind.RECV_F, ActionKind.RECV_B}
BACKWARD_KINDS: Final = frozenset({ActionKind.B, ActionKind.W, ActionKind.BW})

_SINGLE_KINDS: Final = {
    kind.value: kind for kind in (*COMPUTE_KINDS, *TRANSFER_KINDS, ActionKind.REDUCE)
}
_NUMBER: Final = rf"(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})"
_SINGLE: Final = re.compile(rf"({_NUMBER})([A-Z][A-Z_]*)({_NUMBER})?", re.ASCII)
_EXCHANGE: Final = re.compile(
    rf"({_NUMBER}SEND_[FB]{_NUMBER})_({_NUMBER}RECV_[FB]{_NUMBER})", re.ASCII
)
_OVERLAP: Final = re.compile(r"\(([^;()]*);([^;()]*)\)")


class Action:
    """One entry of a schedule; the base of `Compute`, `Transfer`, `Reduce`, `Exchange`, `Overlap`.

    Calling the base gives the class that fits the kind.

    Args:
        stage: stage that runs it, from 0.
        kind: a single kind: no exchange, no overlap, which are made of two actions.
        microbatch: index from 0; left out for a reduction, which is for a whole stage.

    Raises:
        ScheduleError: the kind doesn't go with the rest, or an index is no whole number from 0.

    Example:
        >>> action = Action(2, ActionKind.F, 0)
        >>> str(action), type(action).__name__, action == Action.parse("2F0")
        ('2F0', 'Compute', True)
    """

    __slots__ = ()

    def __new__(cls, stage: int, kind: ActionKind, microbatch: int | None = None) -> Action:  # noqa: D102 (the class lists the arguments)
        if kind is ActionKind.REDUCE and microbatch is None:
            return Reduce(stage)
        if microbatch is None or kind not in COMPUTE_KINDS | TRANSFER_KINDS:
            raise ScheduleError(
                f"action must have a stage, a single kind and a microbatch (REDUCE none), but is "
                f"{stage}, {kind}, {microbatch}. Make pairs by `Exchange` or `Overlap`."
            )
        make = Compute if kind in COMPUTE_KINDS else Transfer
        return make(stage, kind, microbatch)

    @property
    def stage(self) -> int:
        """Stage that runs it; of a pair, the stage of the first."""
        raise NotImplementedError

    @property
    def kind(self) -> ActionKind:
        """What it does."""
        raise NotImplementedError

    @staticmethod
    def parse(text: str) -> Action:
        """The action that prints as this text.

        Raises:
            ScheduleSyntaxError: the text is not exactly one action.

        Example:
            >>> Action.parse("2SEND_F3_2RECV_B1").kind.value
            'SEND_F_RECV_B'
            >>> Action.parse("(0F1;3BW0)").first
            0F1
        """
        if pair := _OVERLAP.fullmatch(text):
            return Overlap(_parse_compute(pair[1]), _parse_compute(pair[2]))
        if pair := _EXCHANGE.fullmatch(text):
            return Exchange(_parse_transfer(pair[1]), _parse_transfer(pair[2]))
        return _parse_single(text)


class _Single(NamedTuple):
    stage: int
    kind: ActionKind
    microbatch: int


class _Stage(NamedTuple):
    stage: int


@final
class Compute(_Single, Action):
    """F, B, W or BW of one microbatch on one stage.

    Args:
        stage: stage from 0.
        kind: F, B, W or BW.
        microbatch: index from 0.

    Raises:
        ScheduleError: another kind, or an index that is no whole number from 0.
    """

    __slots__ = ()

    def __new__(cls, stage: int, kind: ActionKind, microbatch: int) -> Compute:  # noqa: D102 (the class lists the arguments)
        _require(kind in COMPUTE_KINDS, "a computation", "F, B, W or BW", kind)
        return tuple.__new__(cls, (_index("stage", stage), kind, _index("microbatch", microbatch)))

    def __repr__(self) -> str:
        return f"{self.stage}{self.kind.value}{self.microbatch}"

    __str__ = __repr__


@final
class Transfer(_Single, Action):
    """One end of a message between two ranks, named by the stage at this end.

    Args:
        stage: stage from 0.
        kind: SEND_F, RECV_F, SEND_B or RECV_B.
        microbatch: index from 0.

    Raises:
        ScheduleError: another kind, or an index that is no whole number from 0.
    """

    __slots__ = ()

    def __new__(cls, stage: int, kind: ActionKind, microbatch: int) -> Transfer:  # noqa: D102 (the class lists the arguments)
        _require(kind in TRANSFER_KINDS, "a transfer", "SEND_F, RECV_F, SEND_B or RECV_B", kind)
        return tuple.__new__(cls, (_index("stage", stage), kind, _index("microbatch", microbatch)))

    def __repr__(self) -> str:
        return f"{self.stage}{self.kind.value}{self.microbatch}"

    __str__ = __repr__

    @property
    def is_send(self) -> bool:
        """Whether this end sends."""
        return self.kind in SEND_KINDS

    @property
    def other_end(self) -> Transfer:
        """The receive of this send, or the send of this receive.

        Example:
            >>> Transfer(2, ActionKind.SEND_F, 5).other_end
            3RECV_F5
        """
        kind, offset = OTHER_END[self.kind]
        return Transfer._make((self.stage + offset, kind, self.microbatch))


OTHER_END: Final = {
    ActionKind.SEND_F: (ActionKind.RECV_F, 1),
    ActionKind.RECV_F: (ActionKind.SEND_F, -1),
    ActionKind.SEND_B: (ActionKind.RECV_B, -1),
    ActionKind.RECV_B: (ActionKind.SEND_B, 1),
}
"""For one end of a message, the kind of the other end and where its stage lies from this one."""


@final
class Reduce(_Stage, Action):
    """The reduction of a stage's gradients over the copies of the pipeline.

    Args:
        stage: stage from 0.

    Raises:
        ScheduleError: the stage is no whole number from 0.
    """

    __slots__ = ()

    def __new__(cls, stage: int) -> Reduce:  # noqa: D102 (the class lists the arguments)
        return tuple.__new__(cls, (_index("stage", stage),))

    @property
    def kind(self) -> ActionKind:
        """Always REDUCE."""
        return ActionKind.REDUCE

    def __repr__(self) -> str:
        return f"{self.stage}REDUCE"

    __str__ = __repr__


class _Ends(NamedTuple):
    send: Transfer
    receive: Transfer


@final
class Exchange(_Ends, Action):
    """A send and a receive with the same neighbour, done as one; the neighbour has the mirror.

    Args:
        send: SEND_F or SEND_B.
        receive: what comes back from there: RECV_B with SEND_F, RECV_F with SEND_B.

    Raises:
        ScheduleError: the two don't go together.

    Example:
        >>> str(Exchange(Transfer(2, ActionKind.SEND_F, 3), Transfer(2, ActionKind.RECV_B, 1)))
        '2SEND_F3_2RECV_B1'
    """

    __slots__ = ()

    def __new__(cls, send: Transfer, receive: Transfer) -> Exchange:  # noqa: D102 (the class lists the arguments)
        if (send.kind, receive.kind) not in EXCHANGE_KINDS:
            raise ScheduleError(
                "an exchange must be SEND_F with RECV_B or SEND_B with RECV_F, but is "
                f"{send} with {receive}."
            )
        return tuple.__new__(cls, (send, receive))

    @property
    def stage(self) -> int:
        """Stage that sends."""
        return self.send.stage

    @property
    def kind(self) -> ActionKind:
        """SEND_F_RECV_B or SEND_B_RECV_F."""
        return EXCHANGE_KINDS[self.send.kind, self.receive.kind]

    @property
    def mirror(self) -> Exchange:
        """The exchange at the other side."""
        return Exchange(self.receive.other_end, self.send.other_end)

    def __repr__(self) -> str:
        return f"{self.send}_{self.receive}"

    __str__ = __repr__


EXCHANGE_KINDS: Final = {
    (ActionKind.SEND_F, ActionKind.RECV_B): ActionKind.SEND_F_RECV_B,
    (ActionKind.SEND_B, ActionKind.RECV_F): ActionKind.SEND_B_RECV_F,
}
"""Kinds of send and receive → kind of the exchange that they make."""


class _Pair(NamedTuple):
    first: Compute
    second: Compute


@final
class Overlap(_Pair, Action):
    """Two computations that run interleaved, so that one hides the other's communication.

    Args:
        first: one of them; neither may need the other.
        second: the other.

    Example:
        >>> str(Overlap(Compute(0, ActionKind.F, 1), Compute(3, ActionKind.BW, 0)))
        '(0F1;3BW0)'
    """

    __slots__ = ()

    @property
    def stage(self) -> int:
        """Stage of the first."""
        return self.first.stage

    @property
    def kind(self) -> ActionKind:
        """Always OVERLAP."""
        return ActionKind.OVERLAP

    def __repr__(self) -> str:
        return f"({self.first};{self.second})"

    __str__ = __repr__


def singles_of(action: Action) -> Iterable[tuple[int, ActionKind, int]]:
    """Stage, kind and microbatch of an action, or of both that a pair is made of; no reduction."""
    return (action,) if type(action) in _SINGLES else action  # type: ignore[return-value]


_SINGLES: Final = (Compute, Transfer)


def parts(action: Action) -> tuple[Action, ...]:
    """The single actions that an action is made of: two for a pair, itself otherwise."""
    if isinstance(action, Overlap | Exchange):
        return tuple(action)
    return (action,)


def _index(what: str, value: int) -> int:
    """The value as a plain int; whole numbers of other libraries are taken, truth values not."""
    if type(value) is int and value >= 0:
        return value
    try:
        index = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        index = -1
    if index < 0:
        raise ScheduleError(f"{what} must be a whole number from 0, but is {value!r}.")
    return index


def _require(fits: bool, what: str, rule: str, kind: ActionKind) -> None:
    if not fits:
        raise ScheduleError(f"the kind of {what} must be {rule}, but is {kind}.")


def _parse_single(text: str) -> Action:
    match = _SINGLE.fullmatch(text)
    kind = _SINGLE_KINDS.get(match[2]) if match else None
    if match is None or kind is None or (match[3] is None) != (kind is ActionKind.REDUCE):
        raise ScheduleSyntaxError(
            f"an action must be a stage, a kind and a microbatch such as `2F0` (at most "
            f"{MAX_DIGITS} digits, REDUCE without microbatch), but is `{shorten(text)}`. The "
            f"kinds are F, B, W, BW, SEND_F, RECV_F, SEND_B, RECV_B, REDUCE.",
            action=shorten(text),
        )
    stage = int(match[1])
    return Reduce(stage) if match[3] is None else Action(stage, kind, int(match[3]))


def _parse_compute(text: str) -> Compute:
    action = _parse_single(text)
    if not isinstance(action, Compute):
        raise ScheduleSyntaxError(
            f"an overlap must hold two computations, but holds `{action}`.", action=action
        )
    return action


def _parse_transfer(text: str) -> Transfer:
    action = _parse_single(text)
    assert isinstance(action, Transfer)  # the pattern of an exchange lets nothing else through
    return action


def shorten(text: str, length: int = 40) -> str:
    """The text, or its beginning where it is long, for messages."""
    return text if len(text) <= length else f"{text[:length]}…"
