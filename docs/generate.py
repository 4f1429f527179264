"""Writes the parts of pages that can be read off the code: `make docs`.

A page holds them between `<!-- generated: NAME -->` and `<!-- end -->`; what stands around is
written by hand and kept. A test fails when a page is no longer what would be written.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

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
from ppframe.schedule import (
    Schedule,
    Shape,
    Transfer,
    build_schedule,
    lower,
    nearest_microbatches,
    schedule_facts,
)
from ppframe.schedule.action import parts as parts_of
from ppframe.schedule.cost import UNIT_COST
from ppframe.schedule.generators.facts import ScheduleFacts
from ppframe.simulator import SimulationReport, draw_svg, simulate

DOCS = Path(__file__).resolve().parent
CONF = DOCS.parent / "conf"
DRAWINGS = DOCS / "schedules"

RANKS, MICROBATCHES = 4, 8
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


@final
@dataclass(frozen=True, slots=True)
class Shown:
    """A schedule of the gallery.

    Args:
        name: how configs call it.
        facts: what its generator declares.
        schedule: an example of it.
        report: its simulation with unit costs.
    """

    name: str
    facts: ScheduleFacts
    schedule: Schedule
    report: SimulationReport

    @property
    def memory(self) -> float:
        """Most activations of a rank, each of a microbatch on all the chunks of the rank."""
        return max(self.report.peak_activation) / self.schedule.chunks_per_rank


@functools.cache
def shown_schedules() -> tuple[Shown, ...]:
    """Every schedule that declares facts, at the gallery's size or the nearest that it takes."""
    found = []
    for name in own("schedule"):
        facts = schedule_facts(name)
        if facts is not None:
            microbatches = nearest_microbatches(name, RANKS, MICROBATCHES)
            schedule = build_schedule(name, RANKS, microbatches)
            found.append(Shown(name, facts, schedule, simulate(schedule)))
    return tuple(found)


def drawings() -> dict[str, str]:
    """The drawing of each schedule, by the name of its file in docs/schedules."""
    return {
        f"{one.name}.svg": draw_svg(one.report, title=one.name, unit=UNIT_COST.time_unit)
        for one in shown_schedules()
    }


def comparison() -> str:
    """All schedules in one table: those with the least bubble first, then the least memory."""
    head = (
        "schedule", "V", "placement", "makespan", "bubble fraction", "span bubble",
        "in flight at most", "memory at most, M_B", "messages",
    )  # fmt: skip
    ranked = sorted(shown_schedules(), key=lambda o: (round(o.report.bubble_fraction, 9), o.memory))
    return "\n".join(table(head, map(_compared, ranked)))


def _compared(one: Shown) -> tuple[str, ...]:
    report, microbatches = one.report, one.schedule.num_microbatches
    sends = (p for row in lower(one.schedule).actions for action in row for p in parts_of(action))
    other = "" if microbatches == MICROBATCHES else f", M = {microbatches}"
    return (
        f"[{one.name}](#{one.name}){other}",
        str(one.schedule.chunks_per_rank),
        one.facts.placement,
        f"{report.makespan:g}",
        f"{report.bubble_fraction:.3f}",
        f"{report.span_bubble:.3f}",
        str(max(report.peak_in_flight)),
        f"{one.memory:g}",
        str(sum(isinstance(part, Transfer) and part.is_send for part in sends)),
    )


def gallery() -> str:
    """Each schedule: its drawing and what holds for it."""
    return "\n\n".join(map(_schedule, shown_schedules()))


def _schedule(one: Shown) -> str:
    facts, report, schedule = one.facts, one.report, one.schedule
    chunks, microbatches = schedule.chunks_per_rank, schedule.num_microbatches
    shape = Shape(RANKS, chunks, microbatches)
    declared = facts.makespan(shape), facts.peak_in_flight(shape)
    places = (f"{stage}→{rank}" for stage, rank in enumerate(schedule.placement))
    taken = taken_text(lambda m: facts.takes_microbatches(shape._replace(microbatches=m)))
    rows = {
        "placement": f"{facts.placement}: stage→rank {', '.join(places)}",
        "ranks (P)": taken_text(facts.takes_ranks),
        "chunks per rank (V)": f"{chunks} by itself; takes {_chunks_text(facts)}",
        "microbatches (M)": taken + ("" if taken == "any" else f", at P = {RANKS}"),
        "makespan": f"{report.makespan:g}, {_declared(declared[0])}",
        "bubble fraction, span bubble": f"{report.bubble_fraction:.3f}, {report.span_bubble:.3f}",
        "peak in flight, by rank": f"{_spaced(report.peak_in_flight)}, {_declared(declared[1])}",
        "peak activation, by rank": _spaced(report.peak_activation),
        "defined by": facts.reference,
    }
    return "\n".join(
        [
            f"## {one.name}",
            "",
            f"{facts.summary[0].upper()}{facts.summary[1:]}.",
            "",
            f"![{one.name} on {RANKS} ranks, {microbatches} microbatches]"
            f"({DRAWINGS.name}/{one.name}.svg)",
            "",
            *table(("fact", "value"), rows.items()),
        ]
    )


def taken_text(takes: Callable[[int], bool]) -> str:
    """Which whole numbers from 1 are taken, in words."""
    tried = range(1, 65)
    taken = [value for value in tried if takes(value)]
    if not taken:
        return "none"
    if taken == list(range(taken[0], 65)):
        return "any" if taken[0] == 1 else f"{taken[0]} and more"
    step = taken[0]
    if taken == list(range(step, 65, step)):
        return "even" if step == 2 else f"multiples of {step}"
    return ", ".join(map(str, taken[:6])) + ("" if len(taken) <= 6 else ", …")


def _chunks_text(facts: ScheduleFacts) -> str:
    least, last = facts.min_chunks, facts.max_chunks
    limits = (
        str(least) if last == least else f"{least} and more" if not last else f"{least} to {last}"
    )
    return limits + (f", multiples of {facts.chunks_step}" if facts.chunks_step > 1 else "")


def _declared(value: object) -> str:
    return "no closed form" if value is None else "as declared"


def _spaced(values: Iterable[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


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
    "schedules.md": {"comparison": comparison, "gallery": gallery},
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


def write() -> None:
    """Write pages and drawings, and remove the drawings of schedules that are no more."""
    for page in PAGES:
        (DOCS / page).write_text(written(page), encoding="utf-8")
    DRAWINGS.mkdir(exist_ok=True)
    made = drawings()
    for file in DRAWINGS.glob("*.svg"):
        if file.name not in made:
            file.unlink()
    for name, drawing in made.items():
        (DRAWINGS / name).write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    write()
