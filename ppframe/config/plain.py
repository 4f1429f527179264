"""From a composed configuration to plain data, once: no other module sees an OmegaConf object.

Everything that keeps it from being plain is a fault: a `???` that nobody filled, an interpolation
that leads nowhere, a key that is no text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, final

from omegaconf import Container, DictConfig, ListConfig, OmegaConf
from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

from ppframe.errors import ConfigError, Fault


@final
class Missing(Enum):
    """Stands in plain data where a value is missing or can't be had; its fault is noted."""

    VALUE = "???"


MISSING: Final = Missing.VALUE
_UNRESOLVED = "must be an interpolation that can be resolved"
_ABSENT = re.compile(r"Interpolation key '(.+)' not found")
_REFERENCE = re.compile(r"\$\{([\w.\[\]]+)\}")


@final
@dataclass(frozen=True, slots=True)
class Composed:
    """A composed configuration as plain data.

    Args:
        tree: nested dicts and lists of text, numbers, truth values, None and `MISSING`.
        faults: what could not be made plain.
        referenced: every word that stands in an interpolation.
        origins: for a value that is nothing but `${another.key}`, that key; by dotted path.
    """

    tree: dict[str, Any]
    faults: tuple[Fault, ...]
    referenced: frozenset[str]
    origins: Mapping[str, str]


def to_plain(config: DictConfig | Mapping[str, Any]) -> Composed:
    """Plain data of a composed configuration, interpolations resolved.

    Args:
        config: what Hydra composed, or plain data that may hold `???` and interpolations.
    """
    node = config if isinstance(config, DictConfig) else OmegaConf.create(dict(config))
    faults: list[Fault] = []
    tree = _mapping(node, "", faults)
    raw = raw_tree(node)
    read = {path: _REFERENCE.findall(text) for path, text in _texts(raw)}
    words = frozenset(
        word for _, text in _texts(raw) if "${" in text for word in re.findall(r"\w+", text)
    )
    matches = {path: _REFERENCE.fullmatch(text) for path, text in _texts(raw)}
    origins = {path: match[1] for path, match in matches.items() if match is not None}
    return Composed(tree, tuple(_roots(faults, read)), words, origins)


def raw_tree(config: Any) -> Any:
    """Nested dicts and lists of a composed configuration, interpolations left as they stand."""
    return OmegaConf.to_container(config, resolve=False)


def without_key(config: Any, key: str) -> Any:
    """A copy of a composed configuration without one of its keys."""
    return OmegaConf.masked_copy(config, [other for other in config if other != key])


def raw_yaml(config: Any) -> str:
    """YAML of a composed configuration, interpolations left as they stand."""
    return OmegaConf.to_yaml(config)


def keys_of_file(path: Path) -> frozenset[str]:
    """The keys at the top of a YAML file; none where it holds no mapping."""
    loaded = OmegaConf.load(path)
    return frozenset(map(str, loaded)) if isinstance(loaded, DictConfig) else frozenset()


def read_yaml(path: Path) -> Any:
    """Nested dicts and lists of a YAML file.

    Raises:
        OSError: it can't be read.
        ValueError: it is no YAML, or holds neither a mapping nor a list.
    """
    try:
        return OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    except OSError:
        raise
    except Exception as error:  # of the YAML library, which is OmegaConf's own affair
        raise ValueError(" ".join(f"{error}".split())) from error


def register_resolver(name: str, resolve: Callable[..., str]) -> None:
    """Let `${name:argument}` stand for what `resolve` makes of the argument."""
    OmegaConf.register_new_resolver(name, resolve, replace=True)


def select(config: Any, path: str) -> Any:
    """The value at a dotted path of a composed configuration; None where there is none.

    Raises:
        ConfigError: an interpolation in it leads nowhere.
    """
    try:
        return OmegaConf.select(config, path)
    except OmegaConfBaseException as error:
        raise ConfigError(str(error).splitlines()[0], path=path) from error


def to_yaml(tree: Mapping[str, Any]) -> str:
    """YAML of plain data; text that looks like a number stays text when it is read again."""
    return OmegaConf.to_yaml(OmegaConf.create(dict(tree)))


def _mapping(node: DictConfig, path: str, faults: list[Fault]) -> dict[str, Any]:
    tree = {}
    for key in node:
        here = f"{path}.{key!s}" if path else str(key)
        if not isinstance(key, str):
            faults.append(
                Fault(
                    here,
                    f"must have text for its key, but has `{key!s}`. Put it in quotes, as it is "
                    "written.",
                )
            )
        tree[str(key)] = _value(node, key, here, faults)
    return tree


def _value(node: Container, key: Any, path: str, faults: list[Fault]) -> Any:
    if OmegaConf.is_missing(node, key):
        override = re.sub(r"\[(\d+)\]", r".\1", path)
        faults.append(Fault(path, f"must be given, but is missing. Type `{override}=VALUE`."))
        return MISSING
    try:
        value = node[key]
    except InterpolationToMissingValueError:
        return MISSING  # the value that it leads to is reported at its own place
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        absent = _ABSENT.search(reason)
        reason = f", but there is no `{absent[1]}`" if absent else f": {reason}"
        faults.append(Fault(path, f"{_UNRESOLVED}{reason}."))
        return MISSING
    if isinstance(value, DictConfig):
        return _mapping(value, path, faults)
    if isinstance(value, ListConfig):
        return [_value(value, index, f"{path}[{index}]", faults) for index in range(len(value))]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _roots(faults: Sequence[Fault], read: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """The faults without interpolations that fail only because they read one which fails itself.

    Args:
        faults: in the order in which they were found.
        read: the keys that the text at a dotted path reads.
    """
    failed = {fault.path for fault in faults if fault.message.startswith(_UNRESOLVED)}
    read = {path: [key for key in read.get(path, ()) if key in failed] for path in failed}
    for fault in faults:
        path, seen = fault.path, set[str]()
        while read.get(path) and path not in seen:
            seen.add(path)
            path = read[path][0]
        if path == fault.path or path in seen:
            yield fault


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in nested dicts and lists, with its dotted path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _texts(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _texts(entry, f"{path}[{index}]")
