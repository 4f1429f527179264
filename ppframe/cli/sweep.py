"""The end of a sweep: what became of each job, as a table and as a CSV file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, final

from hydra.experimental.callback import Callback
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ppframe.cli.records import RECORDS, Row, ranked, sweep_rows, write_csv
from ppframe.simulator.texts import bytes_text

TABLE = "sweep.csv"
_WIDTH_ELSEWHERE = 160


@final
class SweepTable(Callback):
    """Draws the table when the last job has ended, and exits with 1 if any failed."""

    def on_multirun_start(self, config: Any, **_: Any) -> None:
        """Forget the records of an earlier sweep in the same folder."""
        shutil.rmtree(Path(config.hydra.sweep.dir) / RECORDS, ignore_errors=True)

    def on_multirun_end(self, config: Any, **_: Any) -> None:
        """Draw the table, write the file, exit."""
        sweep_dir = Path(config.hydra.sweep.dir)
        rows = ranked(sweep_rows(sweep_dir))
        if not rows:
            return
        write_csv(rows, sweep_dir / TABLE)
        console = Console(stderr=False, width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE)
        console.print(Text(f"sweep in {sweep_dir}"), soft_wrap=True)
        console.print(sweep_table(rows))
        failed = [row for row in rows if row["status"] != "finished"]
        if failed:
            sys.exit(1)


def sweep_table(rows: Sequence[Row]) -> Table:
    """The rows for people: columns in which nothing stands are left out."""
    table = Table()
    columns = [
        column
        for column in rows[0]
        if column not in ("run_dir", "error") and any(row[column] not in (None, "") for row in rows)
    ]
    for column in columns:
        is_number = all(isinstance(row[column], int | float | None) for row in rows)
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(column.replace("_", " "), overflow="fold", justify=justify)
    for row in rows:
        style = None if row["status"] == "finished" else "red"
        table.add_row(*(_cell(column, row[column]) for column in columns), style=style)
    return table


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    if column.endswith("_bytes"):
        return bytes_text(value)
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:.4f}"
    return str(value)
