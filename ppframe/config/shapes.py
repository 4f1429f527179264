"""The shapes that a configuration is made of, and what each accepts.

::

    RunConfig = Section ─┬─ Leaf       a value with a type
                         ├─ Section    a dataclass: `pipeline`, `evaluation`, `checkpoint`
                         ├─ Part       `{name: …, …options}` or `{_target_: …, …kwargs}`
                         ├─ Sinks      parts by name: `logger`
                         └─ Model ── Chunk ── Leaf

A shape checks a plain value to its end, notes every fault with its dotted path, and gives what the
value becomes. It also tells which shape stands below a key, so that one statement of the rules
serves a whole configuration and a single override alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from ppframe.config.options import ANYTHING, Options, Unfit, convert, describe, fits, options_of
from ppframe.config.plain import MISSING
from ppframe.config.schema import Target
from ppframe.config.targets import NotImportable, locate
from ppframe.errors import Fault
from ppframe.registry import nearest_first

TARGET, ARGS = "_target_", "_args_"
_LISTED = 8
_QUOTE = "Where {}, put it in quotes, as it is written: YAML takes it for something else."


@final
@dataclass(frozen=True, slots=True)
class Check:
    """One pass over a configuration.

    Args:
        folder: relative paths are relative to it.
        referenced: words that stand in interpolations, or may stand unread.
        origins: where a value comes from that is nothing but `${another.key}`.
        faults: grows as faults are found.
        paths: grows with the absolute form of each path found, by dotted path.
        chunks: grows with what builds each model chunk, by dotted path.
    """

    folder: Path
    referenced: frozenset[str] = frozenset()
    origins: Mapping[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    chunks: dict[str, Target] = field(default_factory=dict)

    def fault(self, path: str, message: str) -> Any:
        """Note a fault where the value was written; gives `MISSING`, which stands for it."""
        seen = set()
        while path in self.origins and path not in seen:
            seen.add(path)
            path = self.origins[path]
        self.faults.append(Fault(path, message))
        return MISSING


class Shape(ABC):
    """What may stand at one place of the configuration."""

    @abstractmethod
    def check(self, value: Any, path: str, check: Check, /) -> Any:
        """What the plain value becomes, or `MISSING` after noting why it becomes nothing."""

    @abstractmethod
    def child(self, value: Any, key: str, /) -> Shape | None:
        """The shape below a key of `value`, or None where the key is unknown."""


@final
@dataclass(frozen=True, slots=True)
class Leaf(Shape):
    """A value with a type, such as a number, a path or a list of texts."""

    annotation: Any
    default: Any = ANYTHING

    def check(self, value: Any, path: str, check: Check) -> Any:
        """The value as the annotation wants it; one that holds a `_target_` becomes a `Target`."""
        if any(entry is MISSING for entry in _leaves(value)):
            return MISSING
        if holds_target(value):
            return _nested(value, path, check)
        if type(value) is type(self.default) and value == self.default:
            return value
        try:
            return _absolute(convert(self.annotation, value), path, check)
        except Unfit:
            return check.fault(path, self._misfit(value))

    def child(self, _value: Any, _key: str, /) -> Shape | None:
        """None: what is below a leaf belongs to its type."""
        return None

    def _misfit(self, value: Any) -> str:
        message = f"must be {describe(self.annotation)}, but is {shown(value)}."
        if isinstance(value, bool | int | float) and fits(self.annotation, str(value)):
            return f"{message} {_QUOTE.format('it is a name')}"
        if isinstance(value, list) and fits(self.annotation, _as_names(value)):
            return f"{message} {_QUOTE.format('an entry is a name')}"
        return message


@final
@dataclass(frozen=True, slots=True)
class Section(Shape):
    """A dataclass, whose fields are the keys.

    Args:
        made: the dataclass.
        shapes: what stands under each key.
    """

    made: type
    shapes: Mapping[str, Shape]

    def check(self, value: Any, path: str, check: Check) -> Any:
        """The dataclass made of the checked values."""
        values = self.values(value, path, check)
        return MISSING if MISSING in values.values() else self.made(**values)

    def values(self, value: Any, path: str, check: Check) -> dict[str, Any]:
        """The checked value of every field, `MISSING` where it can't be had."""
        if not isinstance(value, dict):
            check.fault(path, not_a_mapping(value))
            return dict.fromkeys(self.shapes, MISSING)
        for key in value:
            if key not in self.shapes:
                check.fault(join(path, key), unknown_key(key, self.shapes))
        return {
            key: shape.check(value[key], join(path, key), check)
            if key in value
            else check.fault(join(path, key), absent(join(path, key)))
            for key, shape in self.shapes.items()
        }

    def child(self, _value: Any, key: str, /) -> Shape | None:
        """The shape of a field."""
        return self.shapes.get(key)


def check_options(
    options: Options, given: Mapping[str, Any], path: str, check: Check
) -> dict[str, Any]:
    """The keywords to call a builder with, out of the plain values given for it.

    Args:
        options: what the builder takes.
        given: plain values by keyword.
        path: dotted path of the mapping that holds them.
        check: notes unknown keywords, missing ones, and values that don't fit.
    """
    values = {}
    for key, value in given.items():
        option = options.named.get(key)
        if option is not None:
            leaf = Leaf(option.annotation, option.default)
            values[key] = leaf.check(value, join(path, key), check)
        elif options.open:
            values[key] = Leaf(ANYTHING).check(value, join(path, key), check)
        else:
            check.fault(join(path, key), unknown_key(key, options.named))
    for name, option in options.named.items():
        if option.required and name not in given:
            check.fault(join(path, name), absent(join(path, name)))
    return values


def target_of(value: Mapping[str, Any], path: str, check: Check) -> Any:
    """The `Target` that a mapping with `_target_` describes, its keywords checked."""
    if TARGET not in value:
        return check.fault(join(path, TARGET), absent(join(path, TARGET)))
    place = join(path, TARGET)
    written = Leaf(str).check(value[TARGET], place, check)
    build = MISSING if written is MISSING else located(written, place, check)
    args = Leaf(list[Any]).check(value.get(ARGS, []), join(path, ARGS), check)
    if MISSING in (build, args):
        return MISSING
    options = options_of(build)
    filled = Options(dict(list(options.named.items())[len(args) :]), open=options.open)
    given = {key: entry for key, entry in value.items() if key not in (TARGET, ARGS)}
    return Target(path=written, args=tuple(args), kwargs=check_options(filled, given, path, check))


def located(target: str, path: str, check: Check) -> Any:
    """What an import path names; a path that can't be imported, or called, is a fault."""
    try:
        found = locate(target)
    except NotImportable as error:
        return check.fault(path, f"{error}.")
    if not callable(found):
        kind = type(found).__name__
        return check.fault(path, f"must be a class or function, but `{target}` is a {kind}.")
    return found


def holds_target(value: Any) -> bool:
    """Whether a `_target_` stands anywhere in a plain value."""
    if isinstance(value, dict):
        return TARGET in value or any(holds_target(entry) for entry in value.values())
    return isinstance(value, list) and any(holds_target(entry) for entry in value)


def join(path: str, key: str) -> str:
    """Dotted path of a key below a path."""
    return f"{path}.{key}" if path else key


def shown(value: Any) -> str:
    """A plain value as a message shows it."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
    kinds: dict[type, str] = {str: "the text ", dict: "the mapping ", list: "the list "}
    return f"{kinds.get(type(value), '')}`{text}`"


def unknown_key(key: str, known: Mapping[str, Any]) -> str:
    """Message for a key that nothing knows."""
    near = ", ".join(nearest_first(key, known)[:_LISTED])
    listed = f"Known, nearest first: {near}" if near else "There are no keys here: take it away"
    return f"must be a known key, but is not. {listed}."


def absent(path: str) -> str:
    """Message for a key that must be there."""
    return f"must be given, but is missing. Type `{path}=VALUE` or write it into a file of conf."


def not_a_mapping(value: Any) -> str:
    """Message for a value that must hold keys."""
    return f"must be a mapping, but is {shown(value)}."


def _nested(value: Any, path: str, check: Check) -> Any:
    if isinstance(value, dict):
        if TARGET in value:
            return target_of(value, path, check)
        return {key: _nested(entry, join(path, key), check) for key, entry in value.items()}
    if isinstance(value, list):
        return [_nested(entry, f"{path}[{index}]", check) for index, entry in enumerate(value)]
    return value


def _as_names(entries: list[Any]) -> list[Any]:
    return [str(entry) if isinstance(entry, bool | int | float) else entry for entry in entries]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for entry in value.values():
            yield from _leaves(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _leaves(entry)
    else:
        yield value


def _absolute(value: Any, path: str, check: Check) -> Any:
    """The value with each path in it made absolute, and noted."""
    if isinstance(value, Path):
        absolute = check.folder / value.expanduser()
        check.paths[path] = str(absolute)
        return absolute
    if isinstance(value, tuple | list):
        entries = [_absolute(entry, f"{path}[{i}]", check) for i, entry in enumerate(value)]
        return tuple(entries) if isinstance(value, tuple) else entries
    return value
