"""Names for builders: kind × name → the function that builds one.

A config says `optimizer: {name: adamw, lr: 0.001}`; the registry turns kind `optimizer` and name
`adamw` into a builder, whose keyword parameters are the options that the config may give. The table
only grows, and only at import: a module that registers is imported by its package, by a `plugins:`
entry, or as an installed entry point.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ppframe.errors import ConfigError

Builder = Callable[..., Any]
_B = TypeVar("_B", bound=Builder)
_builders: dict[str, dict[str, tuple[str, Builder]]] = {}


def register(kind: str, name: str) -> Callable[[_B], _B]:
    """Decorator that enters a builder under kind and name.

    Args:
        kind: what is built, such as `schedule` or `loss`.
        name: how configs call it; `-` and `_` count as the same.

    Returns:
        the decorator; it gives the builder back unchanged.

    Raises:
        ConfigError: another builder has this name.
    """

    def enter(build: _B) -> _B:
        table = _builders.setdefault(kind, {})
        taken = table.get(_key(name))
        if taken is not None and _origin(taken[1]) != _origin(build):
            raise ConfigError(
                f"{kind} name `{name}` must be free, but is taken by "
                f"{'.'.join(_origin(taken[1]))}. Register under another name."
            )
        table[_key(name)] = (name, build)
        return build

    return enter


def builder(kind: str, name: str) -> Builder:
    """The builder of this name.

    Raises:
        ConfigError: no such name; the message lists the known ones, nearest first.
    """
    entry = _builders.get(kind, {}).get(_key(name))
    if entry is None:
        raise ConfigError(unknown_name(kind, name, names(kind)))
    return entry[1]


def canonical_name(kind: str, name: str) -> str:
    """The name as it was registered, for one that may be spelt with `_` for `-`."""
    builder(kind, name)
    return _builders[kind][_key(name)][0]


def names(kind: str) -> tuple[str, ...]:
    """All names of a kind, sorted."""
    return tuple(sorted(name for name, _ in _builders.get(kind, {}).values()))


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Message for an unknown name: the known ones, nearest first."""
    near = ", ".join(nearest_first(name, known))
    listed = f"Known, nearest first: {near}" if near else "There are none: leave it out"
    return f"{what} must be a known name, but is `{name}`. {listed}."


def nearest_first(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names, those most like `name` first."""

    def unlikeness(candidate: str) -> tuple[float, str]:
        ratio = difflib.SequenceMatcher(None, _key(name), _key(candidate)).ratio()
        return (-ratio, candidate)

    return tuple(sorted(known, key=unlikeness))


def _key(name: str) -> str:
    return name.replace("_", "-").lower()


def _origin(build: Builder) -> tuple[str, str]:
    return (getattr(build, "__module__", ""), getattr(build, "__qualname__", repr(build)))
