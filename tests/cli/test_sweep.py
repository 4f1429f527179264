"""Sweeps: jobs that don't touch each other, and a table of what became of them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from rich.console import Console

from ppframe.cli.records import Row, ranked, sweep_rows, write_record
from ppframe.cli.sweep import SweepTable, sweep_table
from tests.launching import TINY_MLP, Ended, launch

LEAKY = """
import random
import numpy, torch
from torch import nn

class Leaky(nn.Module):
    '''Leaves the process changed in every way that it can.'''

    def __init__(self, fail: bool = False) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        if fail:
            raise ValueError('asked to fail')

    def forward(self, x):
        torch.set_num_threads(2)
        torch.manual_seed(7)
        numpy.random.seed(7)
        random.seed(7)
        torch.set_default_dtype(torch.float64)
        return self.layer(x).float()
"""
MODEL = (
    "~model",
    "+model={chunks: [{_target_: leaky.Leaky, fail: false, _repeat_: 4}]}",
    "data=synthetic",
    "data.in_features=4",
    "data.out_features=4",
    "loss=mse",
    "logger=none",
    "debug=smoke",
)


def sweep_dir(folder: Path) -> Path:
    (found,) = folder.glob("multirun/*/*")
    return found


def without_times(path: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        {key: row[key] for key in row if key.startswith(("step", "train/", "val/"))} for row in rows
    ]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A sweep of three jobs, of which the second fails, and the third run alone in `alone`."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "leaky.py").write_text(LEAKY)
    ended = launch("-m", *MODEL, "model.chunks.0.fail=false,true,false", folder=folder)
    alone = launch(*MODEL, "hydra.run.dir=alone", folder=folder)
    assert alone.code == 0, alone.text
    return folder, ended


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (sweep_dir(folder) / "sweep.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_job_equals_the_same_run_alone_bit_for_bit(swept: tuple[Path, Ended]) -> None:
    folder, _ = swept
    job, alone = sweep_dir(folder) / "2", folder / "alone"
    assert without_times(job / "metrics.jsonl") == without_times(alone / "metrics.jsonl")
    states = [torch.load(path / "checkpoints" / "final.pt") for path in (job, alone)]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_a_failing_job_is_told_at_once_with_its_overrides(swept: tuple[Path, Ended]) -> None:
    _, ended = swept
    assert ended.code == 1
    assert ended.err.startswith("Job 1 (")
    assert "model.chunks.0.fail=True" in ended.err
    assert "asked to fail" in ended.err
    assert "Traceback" not in ended.text


def test_a_failing_job_stops_no_other_and_the_table_has_all(swept: tuple[Path, Ended]) -> None:
    folder, ended = swept
    rows = rows_of(folder)
    assert [row["status"] for row in rows] == ["finished", "failed", "finished"]
    assert [row["model.chunks.0.fail"] for row in rows] == ["False", "True", "False"]
    assert rows[0]["final_loss"] == rows[2]["final_loss"]
    assert "asked to fail" in rows[1]["error"]
    assert "│ failed" in ended.out


def test_faults_that_all_jobs_share_start_nothing(tmp_path: Path) -> None:
    ended = launch("-m", *TINY_MLP, "seed=1,2", "optimzer.lr=1", folder=tmp_path)
    assert ended.code == 1
    assert ended.err.startswith("optimzer: must be a known key")
    assert list(tmp_path.iterdir()) == []


def test_plans_are_compared(tmp_path: Path) -> None:
    four = "pipeline.batch_size=8"  # in microbatches of 2
    ended = launch("-m", *TINY_MLP, four, "mode=plan", "schedule=gpipe,dora-dfs", folder=tmp_path)
    assert ended.code == 0
    rows = {row["schedule"]: row for row in rows_of(tmp_path)}
    # P = 2, M = 4, a backward of 2: gpipe takes (M + P - 1) * 3; dora-dfs has V = 2 and stages of
    # the same cost, so V * M * 3 of work and (P - 1) * 3 of idling
    assert float(rows["gpipe"]["makespan"]) == 15
    assert float(rows["dora-dfs"]["makespan"]) == 27
    assert float(rows["gpipe"]["peak_in_flight"]) == 4
    # 3 of 27 units are idle, 3 of 15: the better one comes first
    assert [row["schedule"] for row in rows_of(tmp_path)] == ["dora-dfs", "gpipe"]
    assert float(rows["dora-dfs"]["bubble_fraction_predicted"]) == pytest.approx(3 / 27)
    # both ways over each boundary between the ranks, of which there are V P - 1
    assert [row["messages"] for row in rows_of(tmp_path)] == [str(2 * 4 * 3), str(2 * 4 * 1)]
    assert ended.out.index("│ dora-dfs") < ended.out.index("│ gpipe")


def plan_row(job: int, bubble: float | None, memory: float | None, status: str) -> Row:
    return {
        "job": job,
        "status": status,
        "bubble_fraction_predicted": bubble,
        "makespan": bubble,
        "peak_activation": memory,
        "peak_bytes": None,
    }


def test_plans_with_little_bubble_and_little_memory_come_first() -> None:
    rows = [
        plan_row(0, None, None, "failed"),
        plan_row(1, 0.25, 2.0, "finished"),
        plan_row(2, 0.125, 8.0, "finished"),
        plan_row(3, 0.125, 4.0, "finished"),
    ]
    assert [row["job"] for row in ranked(rows)] == [3, 2, 1, 0]


def test_trainings_stay_in_their_order() -> None:
    rows = [plan_row(job, None, None, "finished") for job in (0, 1)]
    assert [row["job"] for row in ranked(rows[::-1])] == [1, 0]


def test_sizes_in_the_table_have_units() -> None:
    rows = [{"job": 0, "status": "finished", "message_bytes": 2048, "makespan": 15.0}]
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(sweep_table(rows))
    assert "2.0 KiB" in console.export_text(clear=False)
    assert "15 │" in console.export_text()


def test_the_folder_of_a_sweep_stays_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    write_record(folder, 0, ["a=1"], {"status": "finished", "final_loss": 0.5})
    config = OmegaConf.create({"hydra": {"sweep": {"dir": str(folder)}}})
    SweepTable().on_multirun_end(config)
    assert f"sweep in {folder}\n" in capsys.readouterr().out


def test_records_become_rows_in_the_order_of_jobs(tmp_path: Path) -> None:
    write_record(tmp_path, 10, ["a=1", "b=x"], {"status": "finished", "final_loss": 0.5})
    write_record(tmp_path, 2, ["a=1", "++b=y"], {"status": "failed", "error": "E"})
    first, second = sweep_rows(tmp_path)
    assert (first["job"], first["b"], first["status"], first["error"]) == (2, "y", "failed", "E")
    assert (second["job"], second["b"], second["final_loss"]) == (10, "x", 0.5)
    assert "a" not in first
