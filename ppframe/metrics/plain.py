"""Numbers as JSON that every reader takes.

JSON has no NaN and no infinity. They are written as the strings "NaN", "Infinity" and "-Infinity",
which Python's `float()` reads back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def to_json(value: Any, *, indent: int | None = None) -> str:
    """JSON text of nested mappings, sequences, scalars and paths.

    Example:
        >>> to_json({"train/loss": float("nan"), "step": 1})
        '{"train/loss": "NaN", "step": 1}'
    """
    return json.dumps(jsonable(value), indent=indent, allow_nan=False)


def jsonable(value: Any) -> Any:
    """The value in types that JSON has, with non-finite numbers as strings."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Path):
        return str(value)
    return value
