"""The rules of the tree, read from the source: which room imports which, how long things are."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "ppframe"

# A room imports from the rows above its own; of its own row only what SIDEWAYS allows.
ROWS = (
    ("errors",),
    ("registry", "schedule"),
    ("simulator",),
    ("stage", "transport", "models", "data"),
    ("runtime",),
    ("metrics",),
    ("training",),
    ("engine",),
    ("config",),
    ("build",),
    ("cli",),
)
SIDEWAYS = {("schedule", "registry")}
LEVEL = {room: level for level, rooms in enumerate(ROWS) for room in rooms}
LEVEL[""] = LEVEL["runtime"]  # `import ppframe`: the library's door opens into runtime

# What a room may import beside the standard library and ppframe.
OUTSIDE: dict[str, set[str]] = {
    "errors": set(),
    "registry": set(),
    "schedule": set(),
    "simulator": set(),
    "stage": {"torch"},
    "transport": {"torch"},
    "models": {"torch"},
    "data": {"torch"},
    "runtime": {"torch"},
    "metrics": {"rich"},
    "training": {"torch"},
    "engine": {"torch", "numpy"},
    "config": {"omegaconf", "pydantic"},
    "build": {"torch", "numpy"},
    "cli": {"hydra", "rich"},
}
OUTSIDE_ONE_FILE = {"ppframe.metrics.wandb": {"wandb"}}
HEAVY = {"torch", "numpy", "wandb"}

MAX_FILE_LINES = 400
MAX_BODY_LINES = 40
MAX_GENERATOR_LINES = 60  # and of their tests, where a drawing stands in the body
MAX_TEST_LINES = 40
MAX_NESTING = 3
MAX_POSITIONAL = 4
MAX_OPTION_LINES = 40

PYTHON_FILES = sorted(
    path
    for folder in ("ppframe", "tests", "benchmarks", "docs")
    for path in (ROOT / folder).rglob("*.py")
)


# Reading


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
ROOMS = sorted({name.split(".")[1] for name in MODULES if "." in name})


def room_of(module: str) -> str:
    """First name below `ppframe`; empty for the package itself."""
    return module.partition(".")[2].partition(".")[0]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def statements_at_import(nodes: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements that run when the module is imported: no bodies of functions, no typing only."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        for field in ("body", "orelse", "finalbody", "handlers"):
            yield from statements_at_import(getattr(node, field, []))


def targets_of(node: ast.AST) -> Iterator[str]:
    """Modules that one node imports; `from package import module` names the module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in MODULES else node.module or ""
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in (
        "import_module",
        "__import__",
    ):
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


@cache
def imports(module: str, *, only_at_import: bool = False) -> frozenset[tuple[str, int]]:
    """What a module imports, with the line: anywhere in it, or only when it is imported."""
    tree = tree_of(MODULES[module])
    nodes = statements_at_import(tree.body) if only_at_import else ast.walk(tree)
    return frozenset(
        (target, getattr(node, "lineno", 0)) for node in nodes for target in targets_of(node)
    )


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body, the docstring not counted."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def nesting(nodes: list[ast.stmt]) -> int:
    """How deep blocks stand in blocks; `elif` and `except` stay on their level."""
    deepest = 0
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
        inner += [part.body for part in getattr(node, "handlers", []) + getattr(node, "cases", [])]
        is_elif = [len(block) == 1 and isinstance(block[0], ast.If) for block in inner]
        is_elif[0] = False
        depths = [
            nesting(b) + (not chained) for b, chained in zip(inner, is_elif, strict=True) if b
        ]
        deepest = max([deepest, *depths])
    return deepest


def where(path: Path, line: int = 0) -> str:
    return f"{path.relative_to(ROOT)}:{line}" if line else str(path.relative_to(ROOT))


# Imports


def test_every_room_has_its_row() -> None:
    assert [room for room in ROOMS if room not in LEVEL] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_rows_above(room: str) -> None:
    wrong = [
        f"{where(MODULES[module], line)} imports {target}"
        for module in MODULES
        if room_of(module) == room
        for target, line in sorted(imports(module))
        if target.split(".")[0] == "ppframe" and not may_import(room, room_of(target))
    ]
    assert wrong == []


def may_import(room: str, other: str) -> bool:
    return room == other or (room, other) in SIDEWAYS or LEVEL[other] < LEVEL[room]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_uses_only_the_libraries_it_is_allowed(room: str) -> None:
    wrong = [
        f"{where(MODULES[module], line)} imports {target}"
        for module in MODULES
        if room_of(module) == room
        for target, line in sorted(imports(module))
        if (top := target.split(".")[0]) != "ppframe"
        and top not in sys.stdlib_module_names
        and top not in OUTSIDE[room] | OUTSIDE_ONE_FILE.get(module, set())
    ]
    assert wrong == []


def test_no_module_imports_itself_in_a_circle() -> None:
    """Counting imports inside functions and for typing only."""
    graph = {
        module: sorted({t for t, _ in imports(module) if t in MODULES and t != module})
        for module in MODULES
    }
    assert circle(graph) == []


def circle(graph: dict[str, list[str]]) -> list[str]:
    """Some modules that import each other in a ring, or nothing."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in graph[module]:
            if found := visit(target, [*path, module]):
                return found
        done.add(module)
        return []

    return next((found for module in graph if (found := visit(module, []))), [])


def at_import(module: str) -> set[str]:
    """Everything that importing a module imports, the packages around each module included."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in MODULES:
            waiting += [target for target, _ in imports(name, only_at_import=True)]
            waiting += [name.rpartition(".")[0]] if "." in name else []
    return seen


@pytest.mark.parametrize("module", ["ppframe", "ppframe.schedule", "ppframe.simulator"])
def test_schedules_come_without_libraries(module: str) -> None:
    tops = {name.split(".")[0] for name in at_import(module)}
    assert tops - set(sys.stdlib_module_names) == {"ppframe"}


def test_the_command_line_starts_without_heavy_libraries() -> None:
    assert {name.split(".")[0] for name in at_import("ppframe.cli")} & HEAVY == set()


# Sizes


def test_no_file_is_too_long() -> None:
    long = {
        where(path): lines
        for path in PYTHON_FILES
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES
    }
    assert long == {}


def test_no_function_is_too_long() -> None:
    long = {
        f"{where(path, function.lineno)} {function.name}": lines
        for path in PYTHON_FILES
        for function in functions(path)
        if (lines := body_lines(function)) > limit_of(path)
    }
    assert long == {}


def limit_of(path: Path) -> int:
    if path.parent.name == "generators":
        return MAX_GENERATOR_LINES
    return MAX_BODY_LINES if path.is_relative_to(PACKAGE) else MAX_TEST_LINES


def test_no_block_is_nested_too_deep() -> None:
    deep = {
        f"{where(path, function.lineno)} {function.name}": depth
        for path in PYTHON_FILES
        for function in functions(path)
        if (depth := nesting(function.body)) > MAX_NESTING
    }
    assert deep == {}


def test_long_parameter_lists_are_by_keyword() -> None:
    many = {
        f"{where(path, function.lineno)} {function.name}": len(positional)
        for path in MODULES.values()
        for function in functions(path)
        if not function.name.startswith("_")
        if len(positional := [a for a in function.args.args if a.arg not in ("self", "cls")])
        > MAX_POSITIONAL
    }
    assert many == {}


def test_options_are_short() -> None:
    long = {
        where(path): lines
        for path in sorted((ROOT / "conf").rglob("*.yaml"))
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_OPTION_LINES
    }
    assert long == {}


# Habits


def test_no_module_is_called_after_nothing() -> None:
    assert [where(path) for path in PYTHON_FILES if path.stem in ("utils", "util", "helpers")] == []


def test_nothing_is_left_for_later() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "X" * 3)
    left = [
        f"{where(path, number)}: {line.strip()}"
        for path in PYTHON_FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(mark in line for mark in marks)
    ]
    assert left == []


def test_tests_stand_where_the_package_has_the_same_folder() -> None:
    own = {"goldens", "integration", "device"}
    folders = {path.name for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()}
    assert folders - own <= set(ROOMS)
