"""An installed wheel: its own configuration, the user's beside it, from any folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ppframe.cli.folders import conf_folder


def test_a_wheel_brings_its_configuration_and_reads_the_users(tmp_path: Path) -> None:
    wheel = pytest.importorskip("hatchling.builders.wheel")
    root = conf_folder().parent
    (built,) = wheel.WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    zipfile.ZipFile(built).extractall(tmp_path / "site")
    own = tmp_path / "user" / "conf" / "loss"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("# A loss of my own.\nname: mse\n")
    code = "import sys; sys.argv = ['ppframe', '--help']; from ppframe.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=own.parents[1],
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "A loss of my own." in ended.stdout
    assert "* dora-dfs" in ended.stdout
    assert "  ppframe mode=plan" in ended.stdout
    assert (tmp_path / "site" / "ppframe" / "conf" / "config.yaml").is_file()
