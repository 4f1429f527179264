"""Parts of a run in the configuration: `{name: …, …options}` or `{_target_: …, …kwargs}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from ppframe.config.options import options_of
from ppframe.config.plain import MISSING
from ppframe.config.schema import Component, Kind
from ppframe.config.shapes import (
    TARGET,
    Check,
    Leaf,
    Shape,
    check_options,
    join,
    located,
    not_a_mapping,
    shown,
)
from ppframe.errors import ConfigError
from ppframe.registry import builder, canonical_name, names

NAME = "name"


@final
@dataclass(frozen=True, slots=True)
class Part(Shape):
    """A part that the registry builds, or that is imported.

    Args:
        kind: the registry's kind.
        sink: the name, where it is the part's key and doesn't stand among the options.
    """

    kind: Kind
    sink: str | None = None

    def check(self, value: Any, path: str, check: Check) -> Any:
        """A `Component` whose options fit its builder."""
        if value is MISSING:
            return MISSING
        if not isinstance(value, dict):
            return check.fault(path, self._not_a_part(value, path))
        build = self._builder(value, path, check)
        if build is MISSING:
            return MISSING
        given = {key: entry for key, entry in value.items() if key not in self._reserved()}
        values = check_options(options_of(build, without=self.kind.given), given, path, check)
        target = value.get(TARGET)
        name = canonical_name(self.kind.name, self._name(value)) if target is None else self.sink
        return Component(name=name, target=target, options=values)

    def child(self, value: Any, key: str) -> Shape | None:
        """The shape of an option of the builder that `value` names."""
        if key in self._reserved():
            return Leaf(str)
        if not isinstance(value, dict):
            return None
        build = self._builder(value, "", Check(Path()))
        if build is MISSING:
            return None
        option = options_of(build, without=self.kind.given).named.get(key)
        return None if option is None else Leaf(option.annotation)

    def _reserved(self) -> tuple[str, ...]:
        return (TARGET,) if self.sink is not None else (TARGET, NAME)

    def _name(self, value: Mapping[str, Any]) -> Any:
        return value.get(NAME) if self.sink is None else self.sink

    def _builder(self, value: Mapping[str, Any], path: str, check: Check) -> Any:
        """What builds the part; exactly one of name and import path must say it."""
        name, target = self._name(value), value.get(TARGET)
        if MISSING in (name, target):
            return MISSING
        if target is not None and (name is None or self.sink is not None):
            place = join(path, TARGET)
            fit = Leaf(str).check(target, place, check)
            return MISSING if fit is MISSING else located(target, place, check)
        if target is None and name is not None:
            return self._registered(name, path if self.sink else join(path, NAME), check)
        return check.fault(
            path,
            f"must have either `name` or `_target_`, but has {'both' if name else 'neither'}. "
            f"`{path}={{_target_: …, …}}` replaces the whole part. Known names: "
            f"{', '.join(names(self.kind.name)) or 'none'}.",
        )

    def _registered(self, name: Any, place: str, check: Check) -> Any:
        if Leaf(str).check(name, place, check) is MISSING:
            return MISSING
        try:
            return builder(self.kind.name, name)
        except ConfigError as error:
            return check.fault(place, error.faults[0].message)

    def _not_a_part(self, value: Any, path: str) -> str:
        return (
            f"must be a mapping `{{name: …, …options}}`, but is {shown(value)}. `{path}=OPTION` "
            f"picks a config group only where conf/{path}/OPTION.yaml is on the search path; "
            f"`{path}.name` takes one of: {', '.join(names(self.kind.name)) or 'none'}."
        )


@final
@dataclass(frozen=True, slots=True)
class Sinks(Shape):
    """Parts by name; a name with null for its options is off."""

    kind: Kind

    def check(self, value: Any, path: str, check: Check) -> Any:
        """The parts that are on, by name."""
        if value is MISSING:
            return MISSING
        if not isinstance(value, dict):
            return check.fault(path, not_a_mapping(value))
        made = {
            name: Part(self.kind, sink=name).check(options, join(path, name), check)
            for name, options in value.items()
            if options is not None
        }
        return MISSING if MISSING in made.values() else made

    def child(self, _value: Any, key: str, /) -> Shape | None:
        """The part under a name."""
        return Part(self.kind, sink=key)
