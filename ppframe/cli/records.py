"""What the jobs of a sweep leave behind, so that a table can be made of it.

Each job leaves a record in the sweep's folder, so it doesn't matter which launcher ran it, in which
process or on which machine.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RECORDS = ".jobs"
_FIGURES = (
    "status",
    "final_loss",
    "best_val_loss",
    "bubble_fraction_predicted",
    "bubble_fraction_measured",
    "chunks_per_rank",
    "span_bubble",
    "makespan",
    "peak_in_flight",
    "peak_activation",
    "peak_bytes",
    "messages",
    "message_bytes",
    "wall_s",
)
Row = Mapping[str, Any]


def write_record(
    sweep_dir: Path, job: int, overrides: Sequence[str], summary: Mapping[str, Any]
) -> None:
    """Leave word of how a job ended.

    Args:
        sweep_dir: folder of the sweep.
        job: number of the job.
        overrides: of this job.
        summary: what `summary.json` holds, in types that JSON has.
    """
    folder = sweep_dir / RECORDS
    folder.mkdir(parents=True, exist_ok=True)
    record = {"job": job, "overrides": list(overrides), "summary": dict(summary)}
    (folder / f"{job}.json").write_text(json.dumps(record), encoding="utf-8")


def sweep_rows(sweep_dir: Path) -> list[Row]:
    """A row for each job: its number, its own overrides, its figures, and its error."""
    folder = sweep_dir / RECORDS
    records = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")]
    records.sort(key=lambda record: record["job"])
    changed = _changed([record["overrides"] for record in records])
    return [
        {
            "job": record["job"],
            **{key: _settings(record["overrides"]).get(key, "") for key in changed},
            **{figure: record["summary"].get(figure) for figure in _FIGURES},
            "run_dir": record["summary"].get("run_dir", ""),
            "error": record["summary"].get("error") or "",
        }
        for record in records
    ]


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Plans with the least bubble first, of equal ones that with the least memory; else as given.

    Jobs that failed come last.
    """
    finished = [row for row in rows if row["status"] == "finished"]
    if not finished or any(row["makespan"] is None for row in finished):
        return list(rows)
    failed = [row for row in rows if row["status"] != "finished"]
    return [*sorted(finished, key=_badness), *failed]


def _badness(row: Row) -> tuple[float, ...]:
    memory = row["peak_activation"] if row["peak_bytes"] is None else row["peak_bytes"]
    return (round(row["bubble_fraction_predicted"] or 0.0, 9), memory or 0.0, row["job"])


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """The rows for programs: every column, full digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _settings(overrides: Sequence[str]) -> dict[str, str]:
    pairs = (override.lstrip("+").partition("=") for override in overrides)
    return {key: value for key, _, value in pairs}


def _changed(jobs: Sequence[Sequence[str]]) -> list[str]:
    """Keys whose values differ between jobs; all of them where there is one job."""
    settings = [_settings(job) for job in jobs]
    keys = list(dict.fromkeys(key for job in settings for key in job))
    return [key for key in keys if len(jobs) == 1 or len({job.get(key) for job in settings}) > 1]
