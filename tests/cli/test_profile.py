"""From a profile to a plan that is made with it, by command lines alone."""

from __future__ import annotations

import csv
import json
import logging
import re
import shlex
from pathlib import Path

import pytest

from ppframe.config.profiles import read_profile
from tests.launching import TINY_GPT, TINY_MLP, launch
from tests.profiles import made_profile, write_profile

# Two stages on two ranks, two microbatches: F of 1 s and 3 s, BW of 2 s and 4 s, hops of a half
# and a quarter of a second, by the stage that sends.
#
#   rank 0  F0 F1 ····················BW0-- ······BW1--    BW0 from 11.75, BW1 from 15.75
#   rank 1  ··F0--- F1--- BW0---- BW1----                  F0 from 1.5, then without a break to 15.5
TWO = (*TINY_MLP, "schedule=gpipe", "pipeline.batch_size=4")
SECONDS = {
    "forward": (1.0, 3.0),
    "backward": (2.0, 4.0),
    "transfer": (0.5, 0.25),
    "activation_bytes": (100.0, 10.0),
    "weight_bytes": (1000.0, 2000.0),
}
BUBBLE = 1 - (2 * (1 + 2) + 2 * (3 + 4)) / (2 * 17.75)


def run_dirs(folder: Path) -> list[Path]:
    return sorted(folder.glob("outputs/*/*"))


@pytest.fixture
def slow(tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    """A folder with the profile, and the overrides that use it."""
    profile = made_profile(*TWO, num_stages=2, folder=tmp_path, numbers=SECONDS)
    write_profile(tmp_path / "slow.yaml", profile)
    return tmp_path, (*TWO, "cost=profiled", "cost.path=slow.yaml")


def test_a_profile_is_measured_told_and_planned_with(tmp_path: Path) -> None:
    measured = launch(*TINY_GPT, "mode=profile", folder=tmp_path)
    assert measured.code == 0, measured.text
    (run_dir,) = run_dirs(tmp_path)
    profile = read_profile(run_dir / "profile.yaml")
    assert (profile.made_for.num_stages, profile.made_for.ranks) == (4, 2)
    assert (profile.measured_on.repeats, profile.measured_on.inputs) == (3, ("int64 [2, 8]",))
    assert "medians of 3 repeats after 1 to warm up, on cpu" in measured.out
    # 2 samples of 8 tokens of 16 numbers leave the first stage, which keeps them to start from.
    assert profile.cost.activation_bytes[0] >= 2 * 8 * 16 * 4
    assert min(profile.cost.transfer) > 0
    summary = json.loads((run_dir / "summary.json").read_text())
    assert (summary["mode"], summary["steps"]) == ("profile", 0)
    told = re.findall(r"^  python launch.py (.*)$|^  launch.py (.*)$", measured.out, re.MULTILINE)
    arguments = shlex.split("".join(told[0]))
    assert arguments[-3:-1] == ["mode=plan", "cost=profiled"]
    planned = launch(*arguments, folder=tmp_path)
    assert planned.code == 0, planned.text
    assert re.search(r"^makespan: [\d.]+ (ms|µs|s)$", planned.out, re.MULTILINE)
    assert "cost: profiled, medians of 3 repeats" in planned.out
    assert re.search(r"^peak memory by rank: [\d.]+ KiB, [\d.]+ KiB$", planned.out, re.MULTILINE)


def test_a_plan_is_predicted_with_the_profiles_numbers(slow: tuple[Path, tuple[str, ...]]) -> None:
    folder, overrides = slow
    ended = launch(*overrides, "mode=plan", folder=folder)
    assert ended.code == 0, ended.text
    assert "makespan: 17.75 s\n" in ended.out
    assert f"bubble fraction: {BUBBLE:.4f}\n" in ended.out
    assert "idle by rank: 11.75 s, 3.75 s\n" in ended.out
    # Both microbatches are held, beside the weights.
    assert "peak memory by rank: 1.2 KiB, 2.0 KiB\n" in ended.out
    assert "on abacus with 10 threads, torch 0.1\n" in ended.out


def test_a_training_is_predicted_with_them_too(
    slow: tuple[Path, tuple[str, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    folder, overrides = slow
    with caplog.at_level(logging.INFO):
        ended = launch(*overrides, "logger=console", folder=folder)
    assert ended.code == 0, ended.text
    (run_dir,) = run_dirs(folder)
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["bubble_fraction_predicted"] == pytest.approx(BUBBLE)
    log = (run_dir / "launch.log").read_text()
    assert f"predicted bubble {BUBBLE:.1%}, span bubble" in log
    assert "step 17.75 s" in log
    assert "1.2 KiB" in log
    assert "measured with devices abacus, abacus, but here it is cpu" in log
    assert "measured with torch 0.1" in log


def test_without_bytes_it_is_said_what_memory_needs(tmp_path: Path) -> None:
    ended = launch(*TWO, "mode=plan", folder=tmp_path)
    assert "makespan: 9 forwards\n" in ended.out
    assert "peak memory by rank: not known: needs bytes, as cost=profiled has them\n" in ended.out


def test_schedules_of_as_many_stages_are_compared_with_one_profile(tmp_path: Path) -> None:
    numbers = {"forward": (1.0, 2.0, 2.0, 1.0), "activation_bytes": (10.0,) * 4}
    four = tuple(text for text in TWO if not text.startswith("schedule"))
    profile = made_profile(*four, num_stages=4, folder=tmp_path, numbers=numbers)
    write_profile(tmp_path / "four.yaml", profile)
    given = (*four, "mode=plan", "cost=profiled", "cost.path=four.yaml")
    ended = launch("-m", *given, "schedule=interleaved-1f1b,dora-dfs,zbv", folder=tmp_path)
    assert ended.code == 0, ended.text
    (table,) = tmp_path.glob("multirun/*/*/sweep.csv")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["finished"] * 3
    # Each rank has 2 microbatches of F in 1 + 2 s, and of a backward in 1 + 1 s or more.
    assert all(float(row["makespan"]) >= 2 * 3 + 2 * 2 for row in rows)
    assert len({row["makespan"] for row in rows}) > 1


def test_a_profile_of_other_schedules_starts_nothing(slow: tuple[Path, tuple[str, ...]]) -> None:
    folder, overrides = slow
    ended = launch(*overrides, "schedule=dora-dfs", "mode=plan", folder=folder)
    assert ended.code == 1
    assert ended.err.startswith("cost.path: must have a number for each of the 4 stages")
    assert run_dirs(folder) == []
