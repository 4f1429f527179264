"""wandb: offline without a key, never a question, and nothing left behind."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ppframe.errors import ConfigError
from ppframe.metrics.wandb import WandbOptions, WandbSink, choose_mode, has_key
from ppframe.registry import builder
from tests.metrics.runs import make_run


@pytest.fixture
def no_key(monkeypatch, tmp_path):
    """An environment without key or netrc, and wandb quiet in it."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DISABLE_GIT", "true")
    monkeypatch.setenv("WANDB_X_DISABLE_STATS", "true")
    return tmp_path / "netrc"


def inspect(run_dir: Path, *options: str) -> str:
    (record,) = run_dir.glob("wandb/offline-run-*/*.wandb")
    tool = Path(sys.executable).with_name("wandb")
    command = [tool, "leet", "inspect", "--json", *options, record]
    return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL)


def told(caplog) -> list[str]:
    """What the sink itself logged; wandb's own logger has its own file."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("ppframe")]


def test_importing_the_sink_does_not_import_wandb():
    code = "import sys, ppframe.metrics; sys.exit('wandb' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("asked", "environment", "expected"),
    [
        (None, {}, "offline"),
        (None, {"WANDB_API_KEY": "k"}, "online"),
        (None, {"WANDB_API_KEY": "k", "WANDB_MODE": "offline"}, "offline"),
        (None, {"WANDB_API_KEY": "k", "WANDB_MODE": "dryrun"}, "offline"),
        (None, {"WANDB_MODE": "disabled"}, "disabled"),
        (None, {"WANDB_API_KEY": "k", "WANDB_MODE": ""}, "online"),
        ("online", {"WANDB_API_KEY": "k", "WANDB_MODE": "offline"}, "online"),
        ("online", {}, "offline"),
    ],
)
def test_the_user_decides_then_the_environment_then_the_key(no_key, asked, environment, expected):
    chosen = choose_mode(asked, {"NETRC": str(no_key), **environment})
    assert chosen.name == expected
    assert bool(chosen.notice) == (expected == "offline" and "WANDB_MODE" not in environment)


def test_a_key_in_netrc_counts_for_its_own_host(no_key):
    no_key.write_text("machine wandb.example login user password secret\n")
    no_key.chmod(0o600)
    there = {"NETRC": str(no_key)}
    assert not has_key(there)
    assert has_key({**there, "WANDB_BASE_URL": "https://wandb.example"})
    no_key.write_text("machine api.wandb.ai login user password secret\n")
    assert has_key(there)
    no_key.write_text("nonsense\n")
    assert not has_key(there)


def test_an_offline_run_holds_all_that_was_logged(no_key, tmp_path, caplog):
    sink = builder("logger", "wandb")(project="trial", tags=["a", "b"])
    with caplog.at_level(logging.INFO):
        sink.start(make_run(tmp_path))
    (notice,) = told(caplog)
    assert "no API key found" in notice
    sink.log({"train/loss": 0.5}, 1)
    sink.log({"train/loss": float("nan")}, 2)
    sink.text("sample", "<b>letters</b>")
    sink.page("timeline", "<p>as it ran</p>")
    sink.finish({"status": "failed", "bubble_fraction_measured": 0.4}, 130)
    assert os.environ.get("WANDB_SERVICE") is None

    records = [json.loads(line) for line in inspect(tmp_path).splitlines()]
    run = next(record["run"] for record in records if record["type"] == "run")
    assert run["project"] == "trial"
    assert (run["run_group"], run["job_type"]) == ("sweep", "train")
    assert run["tags"] == ["a", "b"]
    assert run["config"]["update"]["optimizer"] == {"name": "adamw", "betas": [0.9, 0.99]}
    rows = [r["history"]["item"] for r in records if r["type"] == "history"]
    logged = [(row["step"], row["train/loss"]) for row in rows if "train/loss" in row]
    assert logged == [(1, 0.5), (2, "NaN")]
    metrics = [r["metric"] for r in records if r["type"] == "metric"]
    assert {"glob_name": "*", "step_metric": "step"}.items() <= metrics[-1].items()
    summary = json.loads(inspect(tmp_path, "--summary"))
    assert (summary["exit_code"], summary["state"]) == (130, "failed")
    assert summary["summary"]["bubble_fraction_predicted"] == 0.5
    assert summary["summary"]["bubble_fraction_measured"] == 0.4
    assert summary["run_id"] == (tmp_path / "wandb" / "run_id").read_text().strip()
    pages = [page.read_text() for page in tmp_path.glob("wandb/offline-run-*/files/**/*.html")]
    assert any("rank 1" in page and 'data-action="1BW0"' in page for page in pages)
    assert any("&lt;b&gt;letters" in page for page in pages)
    assert any("<p>as it ran</p>" in page for page in pages)


def test_a_run_that_goes_on_keeps_its_id_and_tells_of_its_second_folder(no_key, tmp_path, caplog):
    first = tmp_path / "wandb" / "offline-run-20200101_000000-known"
    first.mkdir(parents=True)
    (tmp_path / "wandb" / "run_id").write_text("known\n")
    sink = WandbSink(WandbOptions(mode="offline"))
    sink.start(make_run(tmp_path))
    sink.finish({}, 0)
    (notice,) = told(caplog)
    assert "run known goes on in a second folder" in notice
    assert json.loads(inspect(tmp_path, "--summary"))["run_id"] == "known"


def test_a_key_without_a_server_falls_back_to_offline(no_key, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    sink = WandbSink(WandbOptions(init_timeout_s=1.0))
    started = time.monotonic()
    sink.start(make_run(tmp_path))
    sink.log({"train/loss": 0.5}, 1)
    sink.finish({}, 0)
    assert time.monotonic() - started < 20
    (notice,) = told(caplog)
    assert "no run online" in notice
    assert json.loads(inspect(tmp_path, "--summary"))["exit_code"] == 0


def test_finish_without_start_is_harmless():
    WandbSink(WandbOptions()).finish({}, 1)


@pytest.mark.parametrize("tag", ["", "x" * 65])
def test_a_tag_that_the_service_refuses_is_a_fault_of_the_configuration(tag):
    with pytest.raises(ConfigError, match="1 to 64 letters") as error:
        builder("logger", "wandb")(tags=("fine", tag))
    assert error.value.path == "logger.wandb.tags"


@pytest.mark.parametrize("letter", "/\\#?%:")
def test_a_project_that_the_service_refuses_is_a_fault_of_the_configuration(letter):
    with pytest.raises(ConfigError, match="must have none of the letters") as error:
        builder("logger", "wandb")(project=f"a{letter}b")
    assert error.value.path == "logger.wandb.project"


def test_an_unknown_mode_in_the_environment_is_a_fault_and_an_empty_one_is_none(
    no_key, tmp_path, monkeypatch
):
    monkeypatch.setenv("WANDB_MODE", "foo")
    with pytest.raises(ConfigError, match=r"WANDB_MODE.* `foo`") as error:
        builder("logger", "wandb")(project="x" * 129, tags=[""])
    places = ["logger.wandb.project", "logger.wandb.tags", "logger.wandb.mode"]
    assert [fault.path for fault in error.value.faults] == places

    monkeypatch.setenv("WANDB_MODE", "")
    sink = builder("logger", "wandb")(mode="disabled")
    sink.start(make_run(tmp_path))
    sink.finish({}, 0)


@pytest.mark.parametrize("home", [None, "/proc/nowhere"])
def test_without_a_home_wandb_keeps_its_log_in_the_run_directory(
    no_key, tmp_path, monkeypatch, capfd, home
):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setenv("WANDB_CACHE_DIR", "")  # so that it is put back
    if home is not None:
        monkeypatch.setenv("HOME", home)
    sink = builder("logger", "wandb")(mode="offline")
    sink.start(make_run(tmp_path))
    sink.finish({}, 0)
    assert "INFO" not in capfd.readouterr().err
    assert list(tmp_path.glob("wandb/cache/**/*.log"))
