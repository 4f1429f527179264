"""Writes the parts of pages that can be read off the code: `make docs`.

A page holds them between `<!-- generated: NAME -->` and `<!-- end -->`; what stands around is
written by hand and kept. A test fails when a page is no longer what would be written.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ppframe.config.options import describe, options_of
from ppframe.config.plugins import import_parts
from ppframe.config.schema import (
    CheckpointConfig,
    EvaluationConfig,
    PipelineConfig,
    ProfileConfig,
    RunConfig,
)
from ppframe.registry import builder, names
from ppframe.schedule import Shape, build_schedule, schedule_facts
from ppframe.simulator import draw_terminal, simulate

DOCS = Path(__file__).resolve().parent
CONF = DOCS.parent / "conf"

RANKS, MICROBATCHES = 4, 8
WIDTH = 120
KINDS = ("data", "loss", "optimizer", "lr_schedule", "schedule", "cost", "engine", "logger")
GIVEN = ("ranks", "microbatches", "chunks_per_rank", "cost")  # by the run, not among the options
SECTIONS = {
    "pipeline": PipelineConfig,
    "evaluation": EvaluationConfig,
    "profile": ProfileConfig,
}
NOT_KEYS = {"launch", "resolved", "model", "checkpoint", *KINDS}


def own(kind: str) -> list[str]:
    """Names that ppframe itself registers, without those of plugins."""
    return [name for name in names(kind) if builder(kind, name).__module__.startswith("ppframe.")]


def gallery() -> str:
    """Every schedule that declares facts: its drawing and what holds for it."""
    return "\n\n".join(_schedule(name) for name in own("schedule") if schedule_facts(name))


def _schedule(name: str) -> str:
    facts = schedule_facts(name)
    assert facts is not None
    chunks = facts.chunks_per_rank
    schedule = build_schedule(name, RANKS, MICROBATCHES)
    report = simulate(schedule)
    shape = Shape(RANKS, chunks, MICROBATCHES)
    declared = facts.makespan(shape), facts.peak_in_flight(shape)
    least, last = facts.min_chunks, facts.max_chunks
    most = " and more" if last is None else "" if last == least else f" to {last}"
    rows = {
        "placement": facts.placement,
        "chunks per rank": f"{chunks} by itself; takes {least}{most}",
        "makespan": f"{report.makespan:g}" + ("" if declared[0] else ", no closed form"),
        "bubble fraction": f"{report.bubble_fraction:.3f}",
        "peak in flight, by rank": " ".join(map(str, report.peak_in_flight)),
        "defined by": facts.reference,
    }
    return "\n".join(
        [
            f"## {name}",
            "",
            f"{facts.summary[0].upper()}{facts.summary[1:]}.",
            "",
            "```text",
            draw_terminal(report.timeline, width=WIDTH),
            "```",
            "",
            *table(("fact", "value"), rows.items()),
        ]
    )


def keys() -> str:
    """The keys that are no group: from the schema, with the values of conf/config.yaml."""
    values = _yaml(CONF / "config.yaml")
    rows = list(_fields(RunConfig, values, "", without=NOT_KEYS | SECTIONS.keys()))
    for name, section in SECTIONS.items():
        rows += _fields(section, values[name], f"{name}.")
    return "\n".join(table(("key", "value", "allowed", "meaning"), rows))


def checkpoint() -> str:
    """The keys of the group `checkpoint`, which is no builder."""
    rows = _fields(CheckpointConfig, _yaml(CONF / "checkpoint/default.yaml"), "checkpoint.")
    return "\n".join(table(("key", "value", "allowed", "meaning"), rows))


def _fields(
    cls: type, values: Mapping[str, Any], prefix: str, *, without: Iterable[str] = ()
) -> Iterator[tuple[str, ...]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    meanings = arguments_of(cls)
    for field in dataclasses.fields(cls):
        if field.name not in without:
            value = shown(values.get(field.name, "???"))
            yield (
                f"`{prefix}{field.name}`",
                value,
                describe(hints[field.name]),
                meanings[field.name],
            )


def parts() -> str:
    """Every registered builder with its options, by kind."""
    import_parts()
    return "\n\n".join(_kind(kind) for kind in KINDS)


def _kind(kind: str) -> str:
    blocks = [f"## {kind}"]
    for name in own(kind):
        build = builder(kind, name)
        blocks.append(f"**`{kind}={name}`**: {summary_of(build)}")
        rows = list(_options(kind, name, build))
        if rows:
            blocks.append("\n".join(table(("option", "value", "allowed", "meaning"), rows)))
    return "\n\n".join(blocks)


def _options(kind: str, name: str, build: Callable[..., Any]) -> Iterator[tuple[str, ...]]:
    file = CONF / kind / f"{name}.yaml"
    in_file: Mapping[str, Any] = (_yaml(file) or {}) if file.exists() else {}
    prefix = f"{kind}.{name}." if kind == "logger" else f"{kind}."
    values = in_file.get(name, in_file) if kind == "logger" else in_file
    meanings = arguments_of(build)
    for option in options_of(build, without=GIVEN).named.values():
        value = values.get(option.name, "???" if option.required else option.default)
        meaning = meanings.get(option.name, comment_of(file, option.name))
        yield f"`{prefix}{option.name}`", shown(value), describe(option.annotation), meaning


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def comment_of(path: Path, key: str) -> str:
    """What stands beside a key in a YAML file."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = re.search(rf"^ *{key}:[^#\n]*# *(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def summary_of(documented: Any) -> str:
    """First line of a docstring."""
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def arguments_of(documented: Any) -> dict[str, str]:
    """What a docstring says of each argument."""
    doc = inspect.getdoc(documented) or ""
    section = re.search(r"^Args:\n((?: .*\n?|\n)+)", doc, re.MULTILINE)
    if section is None:
        return {}
    entries = re.split(r"^(?=\w+:)", textwrap.dedent(section[1]), flags=re.MULTILINE)
    pairs = (entry.partition(":") for entry in entries if entry.strip())
    return {name: _in_yaml(" ".join(meaning.split())) for name, _, meaning in pairs}


def _in_yaml(meaning: str) -> str:
    return re.sub(r"\bNone\b", "null", meaning).rstrip(".")


def shown(value: Any) -> str:
    """A value as one types it in YAML."""
    if isinstance(value, (list, tuple)):
        return f"`[{', '.join(map(str, value))}]`"
    words = {None: "null", True: "true", False: "false"}
    is_word = value is None or isinstance(value, bool)
    return f"`{words[value] if is_word else value}`"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines]


PAGES = {
    "schedules.md": {"gallery": gallery},
    "config.md": {"keys": keys, "checkpoint": checkpoint, "parts": parts},
}


def written(page: str) -> str:
    """The page as it would be written."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, make in PAGES[page].items():
        start, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(start)
        text = f"{before}{start}\n{make()}\n\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    for page in PAGES:
        (DOCS / page).write_text(written(page), encoding="utf-8")
