"""Buffers: what waits between two actions, by microbatch."""

from __future__ import annotations

from typing import Any, final

from ppframe.errors import InternalError


@final
class Buffer(dict[int, Any]):
    """Values that one action left for another, by microbatch; each is taken out once.

    It is a dict, so putting and taking costs no call of ours; `require_empty` at the end of a step
    finds what nobody took.

    Args:
        name: what lies in it, for the error.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def require_empty(self) -> None:
        """Check that everything was taken.

        Raises:
            InternalError: something is left.
        """
        if self:
            raise InternalError(
                f"{self.name} must be empty after a step, but hold microbatches {sorted(self)}."
            )
