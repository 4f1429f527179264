"""The recipes of docs/extending.md, followed to the letter."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
# Under names of their own, so that the recipes also pass where someone has followed them for good.
PAGE = re.sub(r'(?<=["=/ ])(one-at-a-time|huber)(?=["\s.])', r"recipe-\1", PAGE)
FILES = dict(re.findall(r"^```(?:python|yaml) (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^\$ ppframe (.+)$", PAGE, re.MULTILINE)
IN_PACKAGE = "experiment=reference loss=recipe-huber schedule=recipe-one-at-a-time debug=smoke"

# Each command runs in a process of its own, forked from one that has loaded torch already. The
# folder comes first on the path, as it does for `python launch.py`.
LAUNCHER = """
import json, os, sys, traceback
import torch._dynamo
for folder, arguments in json.loads(sys.argv[1]):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        continue
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv[:] = ["launch.py", *arguments]
    file = os.open("printed.txt", os.O_CREAT | os.O_WRONLY)
    os.dup2(file, 1), os.dup2(file, 2)
    code = 0
    try:
        from ppframe.cli import main
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush(), sys.stderr.flush()
    open("code.txt", "w").write(str(code or 0))
    os._exit(0)
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where each command has run: a project of its own, or a copy of the package."""
    places = {command: a_project(tmp_path_factory.mktemp("project")) for command in COMMANDS}
    places[IN_PACKAGE] = a_package(tmp_path_factory.mktemp("package"))
    work = [(str(folder), shlex.split(command)) for command, folder in places.items()]
    subprocess.run(
        [sys.executable, "-c", LAUNCHER, json.dumps(work)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled"},
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=True,
    )
    return places


def a_project(folder: Path) -> Path:
    """A user's project: every file of the page."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def a_package(folder: Path) -> Path:
    """A copy of ppframe, with the schedule and the loss where the page says they go."""
    for name in ("ppframe", "conf"):
        shutil.copytree(ROOT / name, folder / name)
    generators = folder / "ppframe" / "schedule" / "generators"
    (generators / "one_at_a_time.py").write_text(FILES["my_schedules.py"])
    with (generators / "__init__.py").open("a") as file:
        file.write("from ppframe.schedule.generators import one_at_a_time as one_at_a_time\n")
    with (folder / "ppframe" / "training" / "loss.py").open("a") as file:
        file.write(FILES["my_losses.py"])
    for name in ("conf/schedule/recipe-one-at-a-time.yaml", "conf/loss/recipe-huber.yaml"):
        (folder / name).write_text(FILES[name])
    return folder


@pytest.mark.parametrize("command", [*COMMANDS, IN_PACKAGE])
def test_every_command_of_the_page_works(command: str, folders: dict[str, Path]) -> None:
    folder = folders[command]
    assert (folder / "code.txt").read_text() == "0", (folder / "printed.txt").read_text()
    summary = json.loads(next(folder.glob("outputs/*/*/summary.json")).read_text())
    assert summary["status"] == "finished"


def test_the_logger_of_the_page_writes_a_row_for_each_step(folders: dict[str, Path]) -> None:
    folder = next(folders[command] for command in COMMANDS if "experiment=counting" in command)
    rows = next(folder.glob("outputs/*/*/metric.csv")).read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["step", "1", "2", "3", "4"]
