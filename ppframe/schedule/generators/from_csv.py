"""from-csv: a schedule that somebody else made, read from a file."""

from __future__ import annotations

from ppframe.errors import ConfigError
from ppframe.registry import register
from ppframe.schedule.dialects import Dialect
from ppframe.schedule.ir import Schedule
from ppframe.schedule.verify import verify

NAME = "from-csv"


@register("schedule", NAME)
def from_csv(
    ranks: int,
    microbatches: int,
    chunks_per_rank: int | None = None,
    *,
    path: str,
    dialect: Dialect = "ppframe",
) -> Schedule:
    """The compute-only schedule of a file: a line per rank, a cell per action.

    Args:
        ranks: lines of the file.
        microbatches: microbatches of the file.
        chunks_per_rank: stages of each rank of the file; None takes what it has.
        path: the file.
        dialect: letters of the file, ours or torch's.

    Raises:
        ConfigError: the file can't be read, or it is for other numbers.
        ScheduleSyntaxError: it is no schedule; names line and column.
        ScheduleError: it is not legal.
    """
    try:
        schedule = Schedule.from_csv(path, dialect=dialect)
    except OSError as error:
        raise ConfigError(
            f"must be a file that can be read, but `{path}` gives: {error.strerror}.",
            path="schedule.path",
        ) from error
    verify(schedule)
    asked = {"ranks": ranks, "microbatches": microbatches, "chunks_per_rank": chunks_per_rank}
    found = {
        "ranks": schedule.ranks,
        "microbatches": schedule.num_microbatches,
        "chunks_per_rank": schedule.chunks_per_rank,
    }
    for number, value in asked.items():
        if value is not None and value != found[number]:
            raise ConfigError(
                f"must be {found[number]}, as in `{path}`, but is {value}. Change one of them.",
                path=number,
            )
    return schedule
