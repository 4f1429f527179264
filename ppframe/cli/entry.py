"""One override of the command line, in parts."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any, final

from hydra.core.override_parser.types import (
    ChoiceSweep,
    Override,
    OverrideType,
    Quote,
    QuotedString,
)

from ppframe.config.options import fits

_PREFIXES = {
    OverrideType.CHANGE: "",
    OverrideType.ADD: "+",
    OverrideType.FORCE_ADD: "++",
    OverrideType.DEL: "~",
}


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """An override in parts.

    Args:
        prefix: empty, `+`, `++` or `~`.
        key: a config group, or a dotted path.
        raw: the value as it was typed; None without one.
        override: as Hydra understands it.
        only_text: the value breaks Hydra's grammar as it was typed, so it can only be a text.
    """

    prefix: str
    key: str
    raw: str | None
    override: Override
    only_text: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The dotted path, cut; indices of lists are keys too."""
        return tuple(re.findall(r"[^.\[\]]+", self.key))

    @property
    def deletes(self) -> bool:
        """Whether it takes a key away."""
        return self.prefix == "~"

    @property
    def sweeps(self) -> bool:
        """Whether it has several values, for a sweep."""
        return self.override.is_sweep_override()

    @property
    def value(self) -> Any:
        """The value as Hydra understands it; no use for a sweep."""
        return self.override.value()

    def text(self, *, prefix: str | None = None, key: str = "", raw: str | None = None) -> str:
        """The override as one types it, with parts of it replaced."""
        chosen = self.raw if raw is None else raw
        head = (self.prefix if prefix is None else prefix) + (key or self.key)
        return head if chosen is None else f"{head}={chosen}"


def split(override: Override, text: str, *, only_text: bool = False) -> Entry:
    """The parts of a parsed override."""
    _, equals, raw = text.partition("=")
    package = "" if override.package is None else f"@{override.package}"
    return Entry(
        prefix=_PREFIXES[override.type],
        key=override.key_or_group + package,
        raw=raw if equals else None,
        override=override,
        only_text=only_text,
    )


def quoted(text: str) -> str:
    """The text in quotes, as Hydra's grammar has them."""
    return QuotedString(text, Quote.single).with_quotes()


def values_of(entry: Entry, *, at_most: int = 64) -> list[str]:
    """The values that an override takes in a sweep, as typed; its only one otherwise."""
    override = entry.override
    if not entry.sweeps:
        return ["" if entry.raw is None else entry.raw]
    if override.is_discrete_sweep():
        return list(itertools.islice(override.sweep_string_iterator(), at_most))
    interval: Any = override.value()
    return [str(interval.start)]


def as_its_type(entry: Entry, annotation: Any) -> str:
    """The override's value, names in it quoted where Hydra would see something else.

    Args:
        entry: the override.
        annotation: type of the value at its key.
    """
    raw, value = entry.raw or "", entry.override.value()
    if isinstance(value, ChoiceSweep):
        elements = _elements(raw.removeprefix("choice(").removesuffix(")"))
        if not isinstance(value.list, list) or len(elements) != len(value.list):
            return raw
        pairs = zip(elements, value.list, strict=True)
        texts = [_named(element, choice, annotation) for element, choice in pairs]
        return raw if texts == elements else f"choice({','.join(texts)})"
    if entry.only_text:
        return quoted(raw)
    return raw if entry.sweeps else _named(raw, value, annotation)


def _named(raw: str, value: Any, annotation: Any) -> str:
    """The typed text, or that text quoted where only so it fits the type."""
    if value is None or isinstance(value, str | QuotedString | dict) or fits(annotation, value):
        return raw
    if not isinstance(value, list):
        return quoted(raw) if fits(annotation, raw) else raw
    elements = _elements(raw[1:-1])
    if len(elements) != len(value):
        return raw
    pairs = list(zip(elements, value, strict=True))
    if not fits(annotation, [v if isinstance(v, str) else e for e, v in pairs]):
        return raw
    return "[" + ",".join(e if isinstance(v, str) else quoted(e) for e, v in pairs) + "]"


def _elements(text: str) -> list[str]:
    """The parts between commas that stand in no bracket and no quotes."""
    parts, depth, quote = [""], 0, ""
    for index, letter in enumerate(text):
        if letter in "'\"" and (index == 0 or text[index - 1] != "\\"):
            quote = "" if letter == quote else quote or letter
        depth += not quote and (letter in "([{") - (letter in ")]}")
        if letter == "," and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
