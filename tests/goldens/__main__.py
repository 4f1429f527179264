"""Write the golden files anew: the schedule of every generator, for one size, in our letters.

    python -m tests.goldens

Review the difference before it is committed: it is what the change does to schedules.
"""

from __future__ import annotations

from pathlib import Path

from ppframe.schedule import Schedule, build_schedule, nearest_microbatches
from tests.strategies import GENERATORS

FOLDER = Path(__file__).parent
RANKS = 4
MICROBATCHES = 8


def golden(name: str) -> Schedule:
    """The schedule that a generator's golden file holds."""
    microbatches = nearest_microbatches(name, RANKS, MICROBATCHES)
    return build_schedule(name, RANKS, microbatches)


def main() -> None:
    """Write a file for each generator, and take out those that have none."""
    for path in FOLDER.glob("*.csv"):
        path.unlink()
    for name in GENERATORS:
        golden(name).to_csv(FOLDER / f"{name}.csv")


if __name__ == "__main__":
    main()
