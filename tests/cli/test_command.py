"""Whole command lines, in this process where that tells the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ppframe.cli.folders import conf_folder
from tests.launching import TINY_MLP, launch

LAUNCH = conf_folder().parent / "launch.py"


def run_dirs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("outputs/*/*") if path.is_dir())


def summary_of(run_dir: Path) -> dict[str, object]:
    summary: dict[str, object] = json.loads((run_dir / "summary.json").read_text())
    return summary


def test_a_run_leaves_its_files_and_its_checkpoint_is_evaluated_from_anywhere(
    tmp_path: Path,
) -> None:
    ended = launch(*TINY_MLP, "logger=console", folder=tmp_path)
    assert ended.code == 0
    assert "step 2/2" in ended.out
    (run_dir,) = run_dirs(tmp_path)
    names = {path.name for path in run_dir.iterdir()}
    plain = {"config.yaml", "launch.log", "metrics.jsonl", "summary.json", "git.json"}
    assert {".hydra", "schedule.csv", "lowered.csv", "checkpoints", *plain} <= names
    assert "step 2/2" in (run_dir / "launch.log").read_text()
    assert summary_of(run_dir)["run_dir"] == str(run_dir)

    path = run_dir.relative_to(tmp_path) / "checkpoints" / "final.pt"
    elsewhere = ("hydra.job.chdir=true", "hydra.run.dir=evaluated")
    ended = launch(*TINY_MLP, "mode=eval", f"checkpoint={path}", *elsewhere, folder=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    evaluated = summary_of(tmp_path / "evaluated")
    assert evaluated["best_val_loss"] == summary_of(run_dir)["best_val_loss"]


def test_faults_are_one_list_without_a_traceback_and_start_nothing(tmp_path: Path) -> None:
    ended = launch(
        "optimzer.lr=1", "+optimizer.foo=1", "schedule=1f1c", "pipeline.ranks=9", folder=tmp_path
    )
    assert ended.code == 1
    assert ended.err.startswith("4 faults in the configuration:\n")
    for path in ("optimzer", "optimizer.foo", "schedule", "pipeline.ranks"):
        assert f". {path}: " in ended.err
    assert "Traceback" not in ended.text
    assert list(tmp_path.iterdir()) == []


def test_check_builds_everything_and_runs_nothing(tmp_path: Path) -> None:
    ended = launch(*TINY_MLP, "mode=check", folder=tmp_path)
    assert ended.code == 0
    assert ended.out.startswith("The configuration is sound")
    (run_dir,) = run_dirs(tmp_path)
    assert not (run_dir / "metrics.jsonl").exists()


def test_what_builders_refuse_is_one_list_with_the_traceback_in_the_log(tmp_path: Path) -> None:
    refused = ("model.chunks.0.out_features=-1", "data.noise=-1")
    ended = launch(*TINY_MLP, "mode=check", *refused, folder=tmp_path)
    assert ended.code == 1
    assert "1. model.chunks[0]: " in ended.err
    assert "2. data.noise: must be" in ended.err
    assert "Traceback" not in ended.text
    (run_dir,) = run_dirs(tmp_path)
    assert "Traceback" in (run_dir / "launch.log").read_text()
    assert summary_of(run_dir)["status"] == "failed"


def test_a_training_of_what_does_not_fit_starts_nothing(tmp_path: Path) -> None:
    chosen = [text for text in TINY_MLP if not text.startswith("loss")]
    ended = launch(*chosen, "loss=cross_entropy", folder=tmp_path)
    assert ended.code == 1
    assert ended.err.startswith("loss: ")
    (run_dir,) = run_dirs(tmp_path)
    assert not (run_dir / "metrics.jsonl").exists()
    assert not (run_dir / "schedule.csv").exists()


def test_a_plan_is_drawn_and_no_step_is_run(tmp_path: Path) -> None:
    four = "pipeline.batch_size=8"  # in microbatches of 2
    ended = launch(*TINY_MLP, four, "mode=plan", "schedule=1f1b", folder=tmp_path)
    assert ended.code == 0
    assert "rank 1 │" in ended.out
    # 1F1B of 2 ranks and 4 microbatches: (M + P - 1) forwards and as many double backwards
    assert "makespan: 15 forwards" in ended.out
    assert "bubble fraction: 0.2000" in ended.out
    assert "peak in flight by rank: 2 1" in ended.out
    (run_dir,) = run_dirs(tmp_path)
    assert len((run_dir / "schedule.csv").read_text().splitlines()) == 2
    # 4 microbatches of 2 samples go over the one boundary both ways
    assert "transfers: 8 messages, " in ended.out
    assert "critical path: " in ended.out
    assert "makespan 15 forwards" in (run_dir / "schedule.svg").read_text()
    assert "1f1b" in (run_dir / "schedule.html").read_text()
    trace = json.loads((run_dir / "timeline.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in trace) == 2 * 2 * 4
    assert not (run_dir / "checkpoints").exists()


def test_own_options_and_plugins_of_the_launch_folder_are_found(tmp_path: Path) -> None:
    (tmp_path / "own_plugin.py").write_text(
        "from ppframe.registry import register\n"
        "from torch import nn\n"
        "@register('loss', 'own')\n"
        "def own(*, delta: float = 1.0):\n"
        "    return nn.HuberLoss(delta=delta)\n"
    )
    (tmp_path / "conf" / "loss").mkdir(parents=True)
    (tmp_path / "conf" / "loss" / "own.yaml").write_text("name: own\ndelta: 0.5\n")
    chosen = [text for text in TINY_MLP if not text.startswith("loss")]
    ended = launch(*chosen, "loss=own", "plugins=[own_plugin]", folder=tmp_path)
    assert ended.code == 0, ended.text
    wrong = launch(*chosen, "loss=own", "loss.dleta=1", "plugins=[own_plugin]", folder=tmp_path)
    assert "nearest first: delta" in wrong.err


def test_an_error_of_a_module_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "own_module.py").write_text(
        "from torch import nn\n"
        "class Broken(nn.Module):\n"
        "    def forward(self, x):\n"
        "        raise ValueError('no such luck')\n"
    )
    chunks = "model.chunks=[{_target_: own_module.Broken, _repeat_: 4}]"
    ended = launch(*TINY_MLP, chunks, folder=tmp_path)
    assert ended.code == 1
    assert "no such luck" in ended.err
    assert "own_module.py, line 4" in ended.err


# In a process of its own


def python(*argv: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *argv],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_help_lists_groups_options_and_keys_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from ppframe.cli import main; sys.argv = ['launch.py', '--help'];"
        "main(); heavy = {'torch', 'pydantic', 'wandb'} & set(sys.modules); assert not heavy, heavy"
    )
    ended = python("-c", code, folder=tmp_path, PYTHONPATH=str(LAUNCH.parent))
    assert ended.returncode == 0, ended.stderr
    for phrase in ("* dora-dfs", "  microbatch_size: 4", "samples of a step", "mode=plan"):
        assert phrase in ended.stdout


def test_options_complete_without_loading_anything_heavy(tmp_path: Path) -> None:
    ended = python(
        "-X",
        "importtime",
        str(LAUNCH),
        "-sc",
        "query=bash",
        folder=tmp_path,
        COMP_LINE="python launch.py schedule=",
        COMP_POINT="26",
    )
    assert "schedule=1f1b" in ended.stdout
    assert "| torch" not in ended.stderr


def test_launch_exits_with_1_and_the_message_alone(tmp_path: Path) -> None:
    ended = python(str(LAUNCH), "steps=none", folder=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == "steps: must be a whole number of at least 1, but is the text `none`.\n"
    assert ended.stdout == ""
