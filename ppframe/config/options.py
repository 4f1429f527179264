"""The options that a callable takes, and whether a plain value fits one of them.

A dataclass, a registered builder and any class by import path are asked the same way: their
keyword parameters are the options, the annotations are the rules.
"""

from __future__ import annotations

import functools
import inspect
import json
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, final

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

ANYTHING: Any = inspect.Parameter.empty
_WORDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    Path: "a path",
    None: "null",
    types.NoneType: "null",
}
_BOUNDS = {"ge": "of at least", "gt": "above", "le": "of at most", "lt": "below"}


@final
@dataclass(frozen=True, slots=True)
class Option:
    """One keyword that a callable takes.

    Args:
        name: the keyword.
        annotation: its type, `ANYTHING` when it has none.
        required: whether it has no default.
        default: what stands for it when it isn't given.
    """

    name: str
    annotation: Any
    required: bool
    default: Any


@final
@dataclass(frozen=True, slots=True)
class Options:
    """All keywords that a callable takes.

    Args:
        named: by name, in the callable's order.
        open: whether it takes any other keyword too.
    """

    named: Mapping[str, Option]
    open: bool


def options_of(build: Callable[..., Any], *, without: Collection[str] = ()) -> Options:
    """The options of a callable.

    Args:
        build: function or class.
        without: parameters that are no options.

    Returns:
        its keyword parameters; anything goes where Python can't tell its signature.
    """
    try:
        parameters = inspect.signature(build).parameters.values()
    except (TypeError, ValueError):
        return Options({}, open=True)
    hints = _hints(build)
    named = {
        entry.name: Option(
            entry.name,
            hints.get(entry.name, ANYTHING),
            entry.default is entry.empty,
            entry.default,
        )
        for entry in parameters
        if entry.kind in (entry.POSITIONAL_OR_KEYWORD, entry.KEYWORD_ONLY)
        and entry.name not in without
    }
    return Options(named, open=any(entry.kind is entry.VAR_KEYWORD for entry in parameters))


def _hints(build: Callable[..., Any]) -> Mapping[str, Any]:
    annotated = build.__init__ if inspect.isclass(build) else build
    try:
        return typing.get_type_hints(annotated, include_extras=True)
    except Exception:  # annotations are the author's code: any error means that they can't be read
        return {}


@final
class Unfit(Exception):
    """A value that doesn't fit an annotation."""


def convert(annotation: Any, value: Any) -> Any:
    """The value as the annotation wants it: lists become tuples, text becomes a path.

    Nothing else is converted: the text `4` is no number, 1 is not true.

    Raises:
        Unfit: it is of another type, or out of bounds.
    """
    if annotation is ANYTHING or annotation is Any:
        return value
    adapter = _adapter(annotation)
    if adapter is None:
        return value
    try:
        return adapter.validate_json(json.dumps(value), strict=True)
    except (ValidationError, TypeError) as error:
        raise Unfit(str(error)) from error


def fits(annotation: Any, value: Any) -> bool:
    """Whether `convert` would take the value."""
    try:
        convert(annotation, value)
    except Unfit:
        return False
    return True


@functools.cache
def _adapter(annotation: Any) -> TypeAdapter[Any] | None:
    """What checks an annotation, or None where pydantic can't."""
    try:
        return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:
        pass
    try:
        return TypeAdapter(annotation)
    except PydanticUserError:
        return None


def describe(annotation: Any) -> str:
    """An annotation in words: `int | None` is "a whole number or null"."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if origin is Annotated:
        bounds = _bounds(arguments[1:])
        return " ".join(filter(None, (describe(arguments[0]), " and ".join(bounds))))
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(describe(choice) for choice in arguments))
    if origin is not None and issubclass(origin, Mapping):
        return "a mapping"
    if origin is not None and issubclass(origin, Sequence):
        return _describe_list(origin, arguments)
    return getattr(annotation, "__name__", str(annotation))


def _describe_list(origin: type, arguments: tuple[Any, ...]) -> str:
    items = [describe(argument) for argument in arguments if argument is not Ellipsis]
    if issubclass(origin, tuple) and Ellipsis not in arguments:
        return f"a list of {len(items)} ({', '.join(items)})"
    return f"a list (each {items[0]})" if items else "a list"


def _bounds(metadata: tuple[Any, ...]) -> list[str]:
    found = []
    for entry in metadata:
        for rule in getattr(entry, "metadata", (entry,)):
            found += [
                f"{words} {getattr(rule, name)}"
                for name, words in _BOUNDS.items()
                if getattr(rule, name, None) is not None
            ]
    return found
