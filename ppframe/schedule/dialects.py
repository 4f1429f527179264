"""Dialects: the letters in which actions are written in files.

Ours are those of the Zero Bubble paper. torch writes I for our B and B for our BW; its files name
the reduction and the overlap in longer words.
"""

from __future__ import annotations

import logging
import re
from typing import Final, Literal

from ppframe.errors import ScheduleError, ScheduleSyntaxError
from ppframe.schedule.action import Action, Compute, Exchange, Overlap, Reduce, shorten

Dialect = Literal["ppframe", "torch"]

_log = logging.getLogger(__name__)

_TO_TORCH: Final = {"B": "I", "BW": "B"}
_FROM_TORCH: Final = {"I": "B", "B": "BW", "BW": ""}
_COMPUTE: Final = re.compile(r"([0-9]+)(F|I|BW|B|W)([0-9]+)")
_OVERLAP: Final = re.compile(r"(\([^()]*\))OVERLAP_F_B")
_REDUCE: Final = re.compile(r"([0-9]+)REDUCE_GRAD")
_SHARDING: Final = re.compile(r"[0-9]+(?:UNSHARD|RESHARD)(?:[0-9]+)?")


def require_dialect(dialect: str) -> None:
    """Check the name of a dialect.

    Raises:
        ScheduleError: there is no such dialect.
    """
    if dialect not in ("ppframe", "torch"):
        raise ScheduleError(f"dialect must be `ppframe` or `torch`, but is `{dialect}`.")


def write_action(action: Action, dialect: Dialect) -> str:
    """The action in a dialect's letters.

    Raises:
        ScheduleError: torch has no word for the action.

    Example:
        >>> write_action(Action.parse("2BW1"), "torch")
        '2B1'
    """
    if dialect == "ppframe":
        return str(action)
    match action:
        case Compute(stage, kind, microbatch):
            return f"{stage}{_TO_TORCH.get(kind.value, kind.value)}{microbatch}"
        case Overlap(first, second):
            pair = ";".join(write_action(part, dialect) for part in (first, second))
            return f"({pair})OVERLAP_F_B"
        case Reduce(stage):
            return f"{stage}REDUCE_GRAD"
        case Exchange():
            raise ScheduleError(
                f"an action must have a word in torch's dialect, but is `{action}`. Lower without "
                "`group`.",
                action=action,
            )
    return str(action)


def read_action(text: str, dialect: Dialect) -> Action | None:
    """The action that a cell stands for; None for one that is dropped, with a notice in the log.

    Raises:
        ScheduleSyntaxError: the text is no action.

    Example:
        >>> read_action("2B1", "torch"), read_action("2I1", "torch")
        (2BW1, 2B1)
    """
    if _SHARDING.fullmatch(text):
        _log.warning("Dropped `%s`: parameters are not sharded here.", text)
        return None
    return Action.parse(text if dialect == "ppframe" else _from_torch(text))


def _from_torch(text: str) -> str:
    if pair := _OVERLAP.fullmatch(text):
        inner = pair[1][1:-1].split(";")
        return f"({';'.join(map(_from_torch, inner))})"
    if reduce := _REDUCE.fullmatch(text):
        return f"{reduce[1]}REDUCE"
    if compute := _COMPUTE.fullmatch(text):
        kind = _FROM_TORCH.get(compute[2], compute[2])
        if not kind:
            raise ScheduleSyntaxError(
                f"an action in torch's letters must be F, I, W or B, but is `{shorten(text)}`. "
                "Read the file with our letters.",
                action=shorten(text),
            )
        return f"{compute[1]}{kind}{compute[3]}"
    return text
