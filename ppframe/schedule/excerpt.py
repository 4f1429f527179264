"""Tables of actions as text, and excerpts of them with a mark, for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ppframe.schedule.rows import Rows

_REACH: Final = 6
"""Steps and ranks that an excerpt shows on each side of its mark."""


def render(cells: Sequence[Mapping[int, str]], steps: range, ranks: range) -> str:
    """A table with a line per step and a column per rank.

    Args:
        cells: for each rank, step → text.
        steps: steps to show.
        ranks: ranks to show.
    """
    heads = [f"rank {rank}" for rank in ranks]
    columns = [
        [head, *(cells[rank].get(step, "") for step in steps)]
        for head, rank in zip(heads, ranks, strict=True)
    ]
    widths = [max(map(len, column)) for column in columns]
    labels = ["step", *(f"{step:4d}" for step in steps)]
    lines = [
        "  ".join((label, *(text.ljust(w) for text, w in zip(texts, widths, strict=True))))
        for label, *texts in zip(labels, *columns, strict=True)
    ]
    return "\n".join(line.rstrip() for line in lines)


def excerpt(rows: Rows, rank: int, step: int) -> str:
    """The lists around one place, as they are written, with the place marked.

    Args:
        rows: for each rank its actions.
        rank: rank of the place.
        step: index in that rank's list; its length is the place behind the end.

    Example:
        >>> from ppframe.schedule import build_schedule
        >>> print(excerpt(build_schedule("1f1b", ranks=2, microbatches=1).actions, 1, 1))
        step  rank 0  rank 1
           0  0F0     1F0
           1  0BW0    >1BW0<
    """
    ranks = range(max(0, rank - _REACH), min(len(rows), rank + _REACH + 1))
    longest = max(step + 1, *(len(rows[shown]) for shown in ranks))
    steps = range(max(0, step - _REACH), min(longest, step + _REACH + 1))
    cells = [
        {shown: str(row[shown]) for shown in steps if shown < len(row)} if index in ranks else {}
        for index, row in enumerate(rows)
    ]
    cells[rank][step] = f">{cells[rank].get(step, '')}<"
    return render(cells, steps, ranks)
