"""From a composed configuration to a `RunConfig`, or to the list of everything wrong with it."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Collection, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Annotated, Any

from ppframe.config.chunks import Model
from ppframe.config.parts import Part, Sinks
from ppframe.config.plain import to_plain
from ppframe.config.plugins import import_parts, import_plugins
from ppframe.config.rules import combination_faults, refused_options
from ppframe.config.schema import Component, Kind, Launch, ModelConfig, RunConfig
from ppframe.config.shapes import Check, Leaf, Section, Shape
from ppframe.errors import ConfigError, Fault

_NOT_CONFIGURED = ("launch", "resolved")


def load_config(
    config: Mapping[str, Any],
    launch: Launch,
    *,
    faults: Sequence[Fault] = (),
    declared: Collection[str] = (),
) -> RunConfig:
    """The whole configuration, checked.

    Args:
        config: what Hydra composed, or plain data of the same form.
        launch: where the run was started and where it writes.
        faults: what was found before; reported together with the rest.
        declared: keys beside `model.chunks` that may stand there though nothing reads them.

    Raises:
        ConfigError: holds every fault.
    """
    composed = to_plain(config)
    found = [*faults, *composed.faults, *prepare(composed.tree, launch.folder)]
    read = composed.referenced.union(declared)
    check = Check(launch.folder, read, composed.origins)
    values = root_shape().values(composed.tree, "", check)
    found += check.faults
    with chdir(launch.folder):
        found += combination_faults(values, found)
        found += refused_options(values, check.chunks, found)
    if found:
        raise ConfigError(list(dict.fromkeys(found)))
    resolved = with_paths(composed.tree, check.paths)
    return RunConfig(**values, launch=launch, resolved=resolved)


def prepare(tree: Mapping[str, Any], folder: Path) -> list[Fault]:
    """Import all that registers builders, plugins included; gives the plugins' faults."""
    import_parts()
    plugins = tree.get("plugins")
    named = plugins if isinstance(plugins, list) else []
    return import_plugins([name for name in named if isinstance(name, str)], folder)


def root_shape() -> Section:
    """The shape of a whole configuration."""
    return _section(RunConfig, without=_NOT_CONFIGURED)


def shape_at(tree: Any, keys: Sequence[str]) -> Shape | None:
    """The shape at a place of a configuration, or None where no such place is known.

    Args:
        tree: plain data; it tells which builder's options stand below a part.
        keys: the dotted path, cut at the dots; an index is a key too.
    """
    shape: Shape | None = root_shape()
    for key in keys:
        if shape is None:
            return None
        shape, tree = shape.child(tree, key), _below(tree, key)
    return shape


def with_paths(tree: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    """A copy of plain data with the values at these dotted paths replaced."""
    copy: dict[str, Any] = _copy(tree)
    for path, text in paths.items():
        *parents, last = re.findall(r"[^.\[\]]+", path)
        node: Any = copy
        for key in parents:
            node = _below(node, key)
        if isinstance(node, list):
            node[int(last)] = text
        else:
            node[last] = text
    return copy


def _section(made: type, *, without: tuple[str, ...] = ()) -> Section:
    hints = typing.get_type_hints(made, include_extras=True)
    return Section(made, {key: _shape(hint) for key, hint in hints.items() if key not in without})


def _shape(annotation: Any) -> Shape:
    """The shape that an annotation of the schema stands for."""
    if typing.get_origin(annotation) is Annotated:
        held, *marks = typing.get_args(annotation)
        for mark in marks:
            if isinstance(mark, Kind):
                return Part(mark) if held is Component else Sinks(mark)
    if annotation is ModelConfig:
        return Model()
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return _section(annotation)
    return Leaf(annotation)


def _below(tree: Any, key: str) -> Any:
    if isinstance(tree, dict):
        return tree.get(key)
    if isinstance(tree, list) and key.isdigit() and int(key) < len(tree):
        return tree[int(key)]
    return None


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(entry) for key, entry in value.items()}
    return [_copy(entry) for entry in value] if isinstance(value, list) else value
