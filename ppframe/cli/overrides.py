"""The command line vetted: every fault of it found, before Hydra would stop at the first.

Hydra refuses a key that no file lists, and turns a name such as `1e1` into a number. So each
override is looked at here first, and rewritten where its meaning is plain::

    optimizer.amsgrad=true      an option that no file lists:    ++optimizer.amsgrad=true
    logger.wandb.project=1e1    a name, by its type:             logger.wandb.project='1e1'
    checkpoint=runs/7/final.pt  no option of the group:          checkpoint.path='runs/7/final.pt'
    experiment=null             a group that is not to be used:  ~experiment
    loss={_target_: my.Loss}    a whole part for a group:        ~loss +loss={_target_: my.Loss}

A key that nothing knows is let through with `++`, to be found with all other faults of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from hydra.errors import HydraException

from ppframe.cli.composer import Composer, Composition
from ppframe.cli.entry import Entry, as_its_type, quoted, split, values_of
from ppframe.cli.groups import (
    chooses_option,
    group_override,
    replaces_part,
    with_checkpoint_path,
)
from ppframe.config.load import prepare, shape_at
from ppframe.config.options import ANYTHING, fits
from ppframe.config.plain import raw_tree, to_plain
from ppframe.config.shapes import Leaf
from ppframe.errors import ConfigError, Fault
from ppframe.registry import nearest_first

_MAX_RUNS = 8
_MAX_NAMES = 8


@final
@dataclass(frozen=True, slots=True)
class Vetted:
    """A command line that Hydra can take.

    Args:
        overrides: rewritten, those at fault left out.
        faults: what is wrong with the command line itself.
        sweeps: whether it is a sweep.
        runs: the overrides of the only run, or of some jobs of a sweep.
    """

    overrides: tuple[str, ...]
    faults: tuple[Fault, ...]
    sweeps: bool
    runs: tuple[tuple[str, ...], ...]


@final
@dataclass(frozen=True, slots=True)
class _Line:
    """An override on its way: as typed, and as Hydra is to take it."""

    entry: Entry
    text: str
    is_group: bool


def vet(texts: Sequence[str], composer: Composer, folder: Path, *, sweeping: bool) -> Vetted:
    """Vet the overrides of a command line.

    Args:
        texts: as typed.
        composer: knows the groups and composes.
        folder: the launch folder, from which plugins can be imported.
        sweeping: whether several values of a key make several jobs.

    Raises:
        ConfigError: not even the bare configuration can be composed.
    """
    return _Vetting(composer, folder, _first_look(texts, composer), sweeping).run(texts)


def _first_look(texts: Sequence[str], composer: Composer) -> Composition:
    """What the chosen options make; one, such as a `hparams_search`, may ask for a sweep."""
    keys = {text: text.lstrip("+").partition("=")[0] for text in texts}
    choosing = [text for text, key in keys.items() if key == "hydra.mode" or composer.is_group(key)]
    try:
        return composer.compose(choosing)
    except ConfigError:
        return composer.compose([])


@final
class _Vetting:
    """The stages of vetting; each drops the lines that it finds at fault."""

    def __init__(
        self, composer: Composer, folder: Path, start: Composition, sweeping: bool
    ) -> None:
        self._composer = composer
        self._folder = folder
        self._sweeping = sweeping or start.is_sweep
        self._chosen = start.choices
        self._faults: list[Fault] = []

    def run(self, texts: Sequence[str]) -> Vetted:
        lines = self._through(self._expanded(texts), self._read)
        lines = self._usable(self._through(lines, self._choose))
        bases = self._compose_all(line for line in lines if line.is_group)
        trees = [raw_tree(base.whole) for base in bases]
        lines = self._through(lines, lambda line: self._reach(line, trees))
        lines = self._composable(lines)
        lines = self._through(lines, self._name(lines))
        overrides = tuple(line.text for line in lines)
        return Vetted(overrides, tuple(self._faults), self._sweeping, self._runs(overrides))

    def _through(self, items: Iterable[Any], stage: Callable[[Any], _Line | Fault]) -> list[_Line]:
        kept = []
        for item in items:
            outcome = stage(item)
            if isinstance(outcome, Fault):
                self._faults.append(outcome)
            else:
                kept.append(outcome)
        return kept

    def _expanded(self, texts: Sequence[str]) -> Iterator[str]:
        """A whole part given for a group replaces it: `~GROUP` and `+GROUP={…}`."""
        for text in texts:
            entry = self._parse(text)
            if entry is not None and replaces_part(entry, self._composer, self._chosen):
                yield f"~{entry.key}"
                yield entry.text(prefix="+")
            else:
                yield text

    def _read(self, text: str) -> _Line | Fault:
        """[1] The parts of the override."""
        entry = self._parse(text)
        if entry is None or not entry.key:
            return Fault(text, "must be KEY=VALUE, +KEY=VALUE or ~KEY in Hydra's grammar.")
        if entry.sweeps and not self._sweeping:
            return Fault(
                entry.key,
                f"must be one value, but `{entry.raw}` is several. Add -m to run each, or write "
                f"{entry.key}=[{entry.raw}] for a list.",
            )
        entry = with_checkpoint_path(entry, self._composer)
        return _Line(entry, entry.text(), chooses_option(entry, self._composer))

    def _parse(self, text: str) -> Entry | None:
        try:
            return split(self._composer.parse(text), text)
        except (HydraException, ValueError):
            key, equals, raw = text.partition("=")
        try:
            parsed = self._composer.parse(f"{key}{equals}{quoted(raw)}")
        except (HydraException, ValueError):
            return None
        return replace(split(parsed, text), only_text=True)

    def _choose(self, line: _Line) -> _Line | Fault:
        """[2] Options of groups exist."""
        if not line.is_group:
            return line
        outcome = group_override(line.entry, self._composer, self._chosen)
        return outcome if isinstance(outcome, Fault) else replace(line, text=outcome)

    def _reach(self, line: _Line, trees: Sequence[Any]) -> _Line | Fault:
        """[3] The prefix with which Hydra applies the override to each of the trees."""
        entry = line.entry
        if line.is_group:
            return line
        held = [_holds(tree, entry.keys) for tree in trees]
        if not all(held) and (entry.deletes or (entry.keys[0] == "hydra" and not entry.prefix)):
            return Fault(entry.key, f"must be a known key, but is not.{_near(trees[0], entry)}")
        prefix = entry.prefix
        may_add = not all(held) or (not entry.sweeps and isinstance(entry.value, dict))
        if (prefix == "" and may_add) or (prefix == "+" and any(held)):
            prefix = "++"
        raw = quoted(entry.raw or "") if entry.only_text else None
        return replace(line, text=entry.text(prefix=prefix, raw=raw))

    def _usable(self, lines: list[_Line]) -> list[_Line]:
        """The lines without options whose files can't be composed, and without those for them."""
        options = [line for line in lines if line.is_group]
        usable = self._composable(options)
        broken = {line.entry.key for line in options if line not in usable}
        return [line for line in lines if line.entry.keys[0] not in broken]

    def _composable(self, lines: list[_Line]) -> list[_Line]:
        """[4] Hydra can apply all of them; found one by one only where it can't."""
        try:
            self._compose_all(lines)
        except ConfigError:
            kept: list[_Line] = []
            for line in sorted(lines, key=lambda line: not line.is_group):
                try:
                    self._compose_all([*kept, line])
                except ConfigError as error:
                    trees = [raw_tree(made.whole) for made in self._compose_all(kept)]
                    why = _no_place(trees[0], line.entry) or error.faults[0].message
                    self._faults.append(Fault(line.entry.key, why))
                else:
                    kept.append(line)
            return kept
        return lines

    def _name(self, lines: Sequence[_Line]) -> Callable[[_Line], _Line | Fault]:
        """[5] Names stay names, by the type of the value that they are for."""
        trees = [to_plain(composed.task).tree for composed in self._compose_all(lines)]
        for tree in trees:
            prepare(tree, self._folder)

        def stage(line: _Line) -> _Line | Fault:
            entry = line.entry
            if line.is_group or entry.deletes or entry.raw is None:
                return line
            annotation = _annotation_at(trees, entry.keys)
            if entry.only_text and not fits(annotation, entry.raw):
                return Fault(entry.text(), "must be KEY=VALUE in Hydra's grammar. Quote the value.")
            head = line.text.partition("=")[0]
            return replace(line, text=f"{head}={as_its_type(entry, annotation)}")

        return stage

    def _compose_all(self, lines: Iterable[_Line]) -> list[Composition]:
        return [self._composer.compose(run) for run in self._runs([line.text for line in lines])]

    def _runs(self, texts: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        """The overrides of so many jobs that each value, or a fair share of them, is in one."""
        entries = [split(self._composer.parse(text), text) for text in texts]
        values = [
            [entry.text(raw=raw) for raw in values_of(entry)] if entry.sweeps else [entry.text()]
            for entry in entries
        ]
        num_runs = min(_MAX_RUNS, max(map(len, values), default=1))
        return tuple(
            tuple(choices[run * len(choices) // num_runs] for choices in values)
            for run in range(num_runs)
        )


def _holds(tree: Any, keys: Sequence[str]) -> bool:
    """Whether a key stands in nested dicts and lists."""
    for key in keys:
        tree = _below(tree, key)
        if tree is _NOTHING:
            return False
    return True


_NOTHING = object()


def _below(tree: Any, key: str) -> Any:
    if isinstance(tree, dict):
        return tree.get(key, _NOTHING)
    if isinstance(tree, list) and key.isdigit() and int(key) < len(tree):
        return tree[int(key)]
    return _NOTHING


def _no_place(tree: Any, entry: Entry) -> str:
    """Why an override can't be applied to a tree, where that is plain; else empty."""
    if "${" in (entry.raw or ""):
        return (
            f"must be a value or an interpolation such as ${{steps}}, but `{entry.raw}` is none. "
            "Write \\${ where these letters are meant."
        )
    for depth, key in enumerate(entry.keys):
        below = _below(tree, key)
        if below is _NOTHING and isinstance(tree, list):
            path = ".".join(entry.keys[:depth])
            return (
                f"must be an entry of the list `{path}`, which has {len(tree)}, the first of them "
                f"{path}.0, but is `{key}`."
            )
        tree = below
    return ""


def _near(tree: Any, entry: Entry) -> str:
    """The keys beside which an unknown one would stand, nearest first."""
    for key in entry.keys:
        below = _below(tree, key)
        if below is _NOTHING:
            known = [str(other) for other in tree] if isinstance(tree, dict) else []
            near = ", ".join(nearest_first(key, known)[:_MAX_NAMES])
            return f" Known, nearest first: {near}." if near else ""
        tree = below
    return ""


def _annotation_at(trees: Sequence[Any], keys: Sequence[str]) -> Any:
    for tree in trees:
        shape = shape_at(tree, keys)
        if isinstance(shape, Leaf):
            return shape.annotation
    return ANYTHING
