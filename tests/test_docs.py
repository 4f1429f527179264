"""What the pages say is true: links, examples, drawings, generated parts, exported names."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import ppframe
from ppframe.schedule import build_schedule
from ppframe.simulator import draw_terminal, simulate

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = {".git", ".venv", "multirun", "wandb"}
GALLERY = ROOT / "docs" / "schedules"
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))


def files(*suffixes: str) -> Iterator[Path]:
    """The project's own files of some kinds; none that a run or a tool left behind."""
    for path in sorted(ROOT.rglob("*")):
        inside = path.relative_to(ROOT).parts
        left_behind = inside[0] == "outputs" and len(inside) > 2
        hidden = any(part in SKIPPED or part.endswith("_cache") for part in inside)
        if path.suffix in suffixes and path.is_file() and not left_behind and not hidden:
            yield path


PAGES = list(files(".md"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as renderers of Markdown make them."""
    titles = re.findall(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in plain}


# Links


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = without_code(page.read_text(encoding="utf-8"))
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_page_that_is_named_is_there(page: Path) -> None:
    known = {path.name for path in PAGES}
    named = set(re.findall(r"[\w-]+\.md\b", page.read_text(encoding="utf-8")))
    assert named - known == set()


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = [path.name for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
    assert [page for page in pages if f"]({page})" not in index] == []


# Examples


@pytest.mark.parametrize(
    ("page", "number"),
    [
        pytest.param(page, number, id=f"{name_of(page)}-{number}")
        for page in PAGES
        for number in range(len(blocks(page, "python")))
    ],
)
def test_every_example_runs(page: Path, number: int, tmp_path: Path) -> None:
    code = compile(blocks(page, "python")[number], f"{name_of(page)} example {number}", "exec")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        exec(code, {"__name__": "__main__"})


def test_the_drawing_in_the_readme_is_the_simulators() -> None:
    schedule = build_schedule("dora-dfs", ranks=2, microbatches=4)
    drawing = draw_terminal(simulate(schedule).timeline, width=120)
    assert drawing in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(GENERATE["PAGES"]))
def test_generated_pages_are_up_to_date(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text == GENERATE["written"](page), "run `make docs`"


def test_drawings_are_up_to_date_and_none_is_left_over() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in GALLERY.glob("*.svg")}
    drawings = GENERATE["drawings"]()
    assert sorted(files) == sorted(drawings), "run `make docs`"
    assert [name for name in files if files[name] != drawings[name]] == [], "run `make docs`"


@pytest.mark.parametrize(
    ("takes", "text"),
    [
        (lambda n: True, "any"),
        (lambda n: n >= 3, "3 and more"),
        (lambda n: n % 2 == 0, "even"),
        (lambda n: n % 4 == 0, "multiples of 4"),
        (lambda n: n in (1, 8, 9), "1, 8, 9"),
        (lambda n: n % 3 == 1, "1, 4, 7, 10, 13, 16, …"),
        (lambda n: False, "none"),
    ],
)
def test_limits_are_told_in_words(takes: Callable[[int], bool], text: str) -> None:
    assert GENERATE["taken_text"](takes) == text


def test_make_help_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)[0].split()
    described = re.findall(r"^([a-z]+):.*## .+$", text, re.MULTILINE)
    assert sorted(described) == sorted(phony)


# Words


def test_pages_and_code_speak_of_nothing_outside_the_project() -> None:
    """No path of one machine, and no number of a ticket that readers can't look up."""
    outside = re.compile(
        r"(?<![\w.])/(?:work|root|home|tmp|opt)/\w|\.\./shared|\b[Ii]ssue #?\d|\b[Pp]art [1-4]\b"
    )
    kinds = (".md", ".py", ".toml", ".yaml", ".txt", ".csv")
    found = [
        f"{name_of(path)}:{number}: {line.strip()[:100]}"
        for path in [*files(*kinds), ROOT / "Makefile", ROOT / ".ci" / "run"]
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if outside.search(line)
    ]
    assert found == []


# Exported names


PACKAGES = sorted(
    module.name
    for module in pkgutil.walk_packages(ppframe.__path__, "ppframe.")
    if module.ispkg and hasattr(importlib.import_module(module.name), "__all__")
)


def rank_of_name(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, each by the alphabet."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize("package", ["ppframe", *PACKAGES])
def test_exported_names_are_sorted_and_complete(package: str) -> None:
    module = importlib.import_module(package)
    exported = list(module.__all__)
    assert exported == sorted(exported, key=rank_of_name)
    assert [name for name in exported if not hasattr(module, name)] == []
    assert public_names(module) - set(exported) == set()


def public_names(module: ModuleType) -> set[str]:
    """Names that a package gives: those it defines, else, where it defines none, it imports."""
    body = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = {
        alias.name
        for node in body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ppframe")
        for alias in node.names
        if alias.asname is None
    }
    return {name for name in defined or imported if not name.startswith("_")}
