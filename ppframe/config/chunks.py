"""The model in the configuration: a list of chunks, each an import path with its keywords."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from ppframe.config.options import ANYTHING, options_of
from ppframe.config.plain import MISSING
from ppframe.config.schema import ChunkSpec, ModelConfig, PositiveInt
from ppframe.config.shapes import (
    TARGET,
    Check,
    Leaf,
    Shape,
    join,
    located,
    not_a_mapping,
    shown,
    target_of,
)
from ppframe.registry import nearest_first

CHUNKS, REPEAT = "chunks", "_repeat_"


@final
@dataclass(frozen=True, slots=True)
class Model(Shape):
    """`chunks`, and beside it any value that an interpolation reads."""

    def check(self, value: Any, path: str, check: Check) -> Any:
        """A `ModelConfig`; a value that nothing reads is a fault, since it is a slip of the pen."""
        if value is MISSING:
            return MISSING
        if not isinstance(value, dict):
            return check.fault(path, not_a_mapping(value))
        for key in value:
            if key != CHUNKS and key not in check.referenced:
                near = ", ".join(nearest_first(key, [other for other in value if other != key]))
                check.fault(
                    join(path, key),
                    "must be `chunks` or a value that an interpolation reads, but nothing reads "
                    f"it. Other keys, nearest first: {near}.",
                )
        return _Chunks().check(value.get(CHUNKS), join(path, CHUNKS), check)

    def child(self, _value: Any, key: str, /) -> Shape | None:
        """The list of chunks, or a value of any type beside it."""
        return _Chunks() if key == CHUNKS else Leaf(ANYTHING)


@final
@dataclass(frozen=True, slots=True)
class _Chunks(Shape):
    def check(self, value: Any, path: str, check: Check) -> Any:
        if value is MISSING:
            return MISSING
        if not isinstance(value, list) or not value:
            message = "must be a list of at least one mapping `{_target_: …, …kwargs}`"
            return check.fault(path, f"{message}, but is {shown(value)}.")
        chunks = [
            Chunk().check(entry, f"{path}[{index}]", check) for index, entry in enumerate(value)
        ]
        return MISSING if MISSING in chunks else ModelConfig(chunks=tuple(chunks))

    def child(self, _value: Any, key: str, /) -> Shape | None:
        return Chunk() if key.isdigit() else None


@final
@dataclass(frozen=True, slots=True)
class Chunk(Shape):
    """One entry of the list: `{_target_: …, _repeat_: n, …kwargs}`."""

    def check(self, value: Any, path: str, check: Check) -> Any:
        """A `ChunkSpec` whose keywords fit the class."""
        if value is MISSING:
            return MISSING
        if not isinstance(value, dict):
            return check.fault(path, not_a_mapping(value))
        repeat = Leaf(PositiveInt).check(value.get(REPEAT, 1), join(path, REPEAT), check)
        called = {key: entry for key, entry in value.items() if key != REPEAT}
        target = target_of(called, path, check)
        if target is not MISSING:
            check.chunks[path] = target
        return MISSING if MISSING in (repeat, target) else ChunkSpec(target=target, repeat=repeat)

    def child(self, value: Any, key: str) -> Shape | None:
        """The shape of a keyword of the class that `value` names."""
        if key == TARGET:
            return Leaf(str)
        if key == REPEAT:
            return Leaf(PositiveInt)
        if not isinstance(value, dict) or not isinstance(value.get(TARGET), str):
            return None
        build = located(value[TARGET], "", Check(Path()))
        option = None if build is MISSING else options_of(build).named.get(key)
        return None if option is None else Leaf(option.annotation)
