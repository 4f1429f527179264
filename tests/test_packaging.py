"""What is built and installed: the wheel, the pinned versions, the targets of make."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from a copy of what the repository holds."""
    copy, place = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    for name in ("ppframe", "conf"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = "from hatchling.build import build_wheel; import sys; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(place)], cwd=copy, check=True)
    return next(place.glob("*.whl"))


def test_the_wheel_holds_the_package_and_its_conf_once(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    package = {f"ppframe/{path.relative_to(ROOT / 'ppframe')}" for path in tracked("ppframe")}
    conf = {f"ppframe/conf/{path.relative_to(ROOT / 'conf')}" for path in tracked("conf")}
    assert [name for name, times in Counter(names).items() if times > 1] == []
    assert {name for name in names if ".dist-info/" not in name} == package | conf


def tracked(folder: str) -> list[Path]:
    """Files that belong into a wheel: code, pages, configuration, the mark of types."""
    kinds = (".py", ".js", ".css", ".yaml", ".typed")
    own = (path for path in (ROOT / folder).rglob("*") if path.suffix in kinds)
    return [path for path in own if "local" not in path.relative_to(ROOT / folder).parts[:1]]


def test_everything_that_make_installs_is_pinned() -> None:
    pinned = {
        canonical(line.partition("==")[0])
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    assert needed_by([name_of(requirement) for requirement in wanted]) - pinned == set()


def needed_by(names: list[str]) -> set[str]:
    """These distributions and all that they need on this machine."""
    needed: set[str] = set()
    while names:
        name = canonical(names.pop())
        if name in needed:
            continue
        needed.add(name)
        for requirement in metadata.distribution(name).requires or ():
            if "extra ==" not in requirement and is_installed(name_of(requirement)):
                names.append(name_of(requirement))
    return needed


def name_of(requirement: str) -> str:
    return re.split(r"[\s;<>=!~\[(]", requirement, maxsplit=1)[0]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def is_installed(name: str) -> bool:
    return any(True for _ in metadata.distributions(name=name))
