"""Rows: the CSV form of schedules, a line per rank and a cell per action.

There is no header, and empty cells are skipped, so that files which draw bubbles as such can be
read too. Placement and chains stand nowhere: they are seen from which rank computes which stage of
which microbatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Final

from ppframe.errors import ScheduleSyntaxError
from ppframe.schedule.action import Action, Compute, Overlap
from ppframe.schedule.dialects import Dialect, read_action, require_dialect, write_action
from ppframe.schedule.owners import Cell, owners_of, refuse_cell
from ppframe.schedule.placement import Placement

Rows = tuple[tuple[Action, ...], ...]
"""For each rank its actions, in order."""

_BYTE_ORDER_MARK: Final = "\ufeff"


def write_rows(rows: Rows, dialect: Dialect = "ppframe") -> str:
    """The CSV text of rows.

    Raises:
        ScheduleError: the dialect is unknown, or has no word for an action.

    Example:
        >>> write_rows(((Action.parse("0F0"), Action.parse("0BW0")),))
        '0F0,0BW0\\n'
    """
    require_dialect(dialect)
    return "".join(",".join(write_action(a, dialect) for a in row) + "\n" for row in rows)


def read_rows(
    text: str, dialect: Dialect = "ppframe", *, compute_only: bool
) -> tuple[Rows, Placement, tuple[int, ...]]:
    """The rows of a CSV text, which rank owns which stage, and the chain of each microbatch.

    There are two chains where every rank has one stage and microbatches come that run on the
    mirror image of the ranks of others. Chain 0 is the one whose first stage lies on the lower
    rank; a microbatch that is not all on one of them takes the one on which more of it runs, of two
    equal ones chain 0, and the rest of it is at fault.

    Line ends of all systems and a byte order mark are taken; blanks around a cell and empty lines
    at the end don't count.

    Args:
        text: the CSV text.
        dialect: its letters.
        compute_only: whether communication is a fault.

    Raises:
        ScheduleSyntaxError: a cell is no action, a line holds none, a stage is computed on two
            ranks or on none, or a microbatch on ranks of neither chain; names line and column, and
            rank, step and action.

    Example:
        >>> read_rows("0F0,0BW0", compute_only=True)
        (((0F0, 0BW0),), Placement(owners=(0,), ranks=1), ())
        >>> read_rows("0F0,1F1\\n1F0,0F1", compute_only=True)[1:]
        (Placement(owners=(0, 1), ranks=2), (0, 1))
    """
    require_dialect(dialect)
    lines = (
        text.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    )
    while lines and not lines[-1].strip(" \t,"):
        lines.pop()
    if not lines:
        raise ScheduleSyntaxError(
            "a schedule must have a line for each rank, but the text is empty."
        )
    table = [_read_line(line, rank, dialect, compute_only) for rank, line in enumerate(lines)]
    placement, chains = owners_of(table)
    return tuple(tuple(cell.action for cell in row) for row in table), placement, chains


def read_file(path: str | PathLike[str]) -> str:
    """The text of a schedule file.

    Raises:
        ScheduleSyntaxError: it is not UTF-8 text.
        OSError: it can't be read.
    """
    data = Path(path).read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - before.rfind(b"\n")
        raise ScheduleSyntaxError(
            f"{path} must be UTF-8 text, but has byte 0x{data[error.start]:02x} in line {line}, "
            f"column {column}. Save it as plain CSV.",
            line=line,
            column=column,
        ) from None


def _read_line(line: str, rank: int, dialect: Dialect, compute_only: bool) -> list[Cell]:
    row: list[Cell] = []
    for text, column in _texts(line):
        action = _read_cell(text, rank, len(row), column, dialect)
        if action is None:
            continue
        row.append(Cell(action, column))
        if compute_only and not isinstance(action, Compute | Overlap):
            rule = "be a computation, as the schedule is compute only"
            change = "Read it with `LoweredSchedule.from_csv`."
            refuse_cell(row[-1], rank, len(row) - 1, rule=rule, change=change)
    if not row:
        raise ScheduleSyntaxError(
            f"line {rank + 1} must hold the actions of rank {rank}, but holds none. Take the line "
            "out.",
            line=rank + 1,
            rank=rank,
        )
    return row


def _texts(line: str) -> Iterator[tuple[str, int]]:
    """The cells of a line that aren't empty, and the columns where they begin."""
    column = 1
    for raw in line.split(","):
        if text := raw.strip(" \t"):
            yield text, column + raw.index(text)
        column += len(raw) + 1


def _read_cell(text: str, rank: int, step: int, column: int, dialect: Dialect) -> Action | None:
    try:
        return read_action(text, dialect)
    except ScheduleSyntaxError as error:
        raise ScheduleSyntaxError(
            f"line {rank + 1}, column {column}: {error}",
            line=rank + 1,
            column=column,
            rank=rank,
            step=step,
            action=error.action,
        ) from None
