"""Overrides that choose an option of a config group, such as `schedule=1f1b`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ppframe.cli.composer import Composer
from ppframe.cli.entry import Entry, quoted, split, values_of
from ppframe.errors import Fault
from ppframe.registry import nearest_first

CHECKPOINT = "checkpoint"


def chooses_option(entry: Entry, composer: Composer) -> bool:
    """Whether an override chooses an option; a mapping for a group sets its keys instead."""
    sets_keys = not entry.sweeps and isinstance(entry.value, dict)
    return composer.is_group(entry.key.partition("@")[0]) and not sets_keys


def replaces_part(entry: Entry, composer: Composer, chosen: Mapping[str, Any]) -> bool:
    """Whether it gives a whole part, `{name: …}` or `{_target_: …}`, for a group in use."""
    if entry.prefix or entry.key not in chosen or entry.sweeps or not composer.is_group(entry.key):
        return False
    return isinstance(entry.value, dict) and not {"name", "_target_"}.isdisjoint(entry.value)


def group_override(entry: Entry, composer: Composer, chosen: Mapping[str, Any]) -> str | Fault:
    """The override as Hydra takes it, or what is wrong with it.

    Args:
        entry: chooses an option.
        composer: knows the options.
        chosen: the groups in use, which need no `+`.
    """
    in_use = entry.key in chosen
    if entry.deletes and not in_use:
        near = ", ".join(nearest_first(entry.key, chosen))
        return Fault(entry.key, f"must be a group in use, but is not. In use: {near}.")
    if entry.deletes or "@" in entry.key:
        return entry.text()
    if not entry.sweeps and entry.value is None:
        return f"~{entry.key}" if in_use else Fault(entry.key, "must be an option, but is null.")
    raw, names = entry.raw or "", _names(entry)
    for name in names:
        option = composer.option_like(entry.key, name)
        if option is None:
            near = ", ".join(nearest_first(name, composer.options(entry.key)))
            return Fault(
                entry.key,
                f"must be one of the group's options, but is `{name}`. Nearest first: {near}.",
            )
        raw = raw.replace(name, option)
    is_text = entry.sweeps or isinstance(entry.value, str | list)
    raw = raw if is_text else quoted(names[0])
    return entry.text(prefix="" if in_use else "+", raw=raw)


def with_checkpoint_path(entry: Entry, composer: Composer) -> Entry:
    """`checkpoint=PATH` as `checkpoint.path=PATH`; any other override as it is."""
    if entry.key != CHECKPOINT or entry.prefix or entry.raw is None:
        return entry
    names = _names(entry)
    if (not entry.sweeps and isinstance(entry.value, dict)) or composer.has_all(CHECKPOINT, names):
        return entry
    raw = entry.raw if entry.sweeps or entry.value is None else quoted(names[0])
    text = entry.text(key=f"{CHECKPOINT}.path", raw=raw)
    return split(composer.parse(text), text)


def _names(entry: Entry) -> list[str]:
    """The options that an override names, as typed."""
    if entry.sweeps:
        return [_unquoted(value) for value in values_of(entry)]
    if isinstance(entry.value, list):
        return [str(value) for value in entry.value]
    return [entry.value if isinstance(entry.value, str) else entry.raw or ""]


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value
