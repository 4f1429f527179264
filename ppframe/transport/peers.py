"""Peers: what the processes of one pipeline do together, beside moving messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, final

import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup

from ppframe.errors import TransportError

UNKNOWN: Final = -1
"""The `peer` of an error when the backend does not say which rank it was."""


class Peers(ABC):
    """All processes of a pipeline; what one calls, all call, in the same order.

    Blocking: each method waits for the other processes.

    Raises:
        TransportError: a process is gone, or hangs.
    """

    @property
    @abstractmethod
    def rank(self) -> int:
        """Pipeline rank of this process."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many processes there are."""

    @abstractmethod
    def sum(self, tensor: Tensor) -> Tensor:
        """Sum over all processes; bitwise the same on each.

        Args:
            tensor: a small float64 tensor on the CPU; stays as it is.
        """

    @abstractmethod
    def broadcast(self, value: Any, source: int) -> Any:
        """What rank `source` gave, on all.

        Args:
            value: anything that can be pickled, tensors on the CPU included; ignored elsewhere.
            source: rank that has it.
        """

    @abstractmethod
    def gather(self, value: Any) -> list[Any] | None:
        """What all gave, by rank, on rank 0; None elsewhere.

        Args:
            value: anything that can be pickled.
        """

    @abstractmethod
    def barrier(self) -> None:
        """Wait until all are here."""


@final
class Alone(Peers):
    """One process that runs all ranks."""

    @property
    def rank(self) -> int:
        """Always 0."""
        return 0

    @property
    def size(self) -> int:
        """Always 1."""
        return 1

    def sum(self, tensor: Tensor) -> Tensor:
        """The tensor itself."""
        return tensor

    def broadcast(self, value: Any, source: int) -> Any:  # noqa: ARG002
        """The value itself."""
        return value

    def gather(self, value: Any) -> list[Any] | None:
        """The one value."""
        return [value]

    def barrier(self) -> None:
        """Nobody to wait for."""


@final
class Group(Peers):
    """The processes of a torch.distributed group.

    Args:
        group: a gloo group, as objects and CPU tensors travel, whatever moves the messages; its
            timeout is how long a call waits. See `Group.of`.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group
        self._rank = dist.get_rank(group)
        self._global_ranks = dist.get_process_group_ranks(group)

    @classmethod
    def of(cls, global_ranks: Sequence[int], *, timeout_s: float) -> Group | None:
        """Make a group; all processes of the job must call this, members or not.

        Args:
            global_ranks: of the members, by pipeline rank.
            timeout_s: how long a call waits for the others.

        Returns:
            the group; None in a process that is no member.
        """
        group = dist.new_group(
            list(global_ranks), timedelta(seconds=timeout_s), "gloo", sort_ranks=False
        )
        return cls(group) if isinstance(group, ProcessGroup) else None

    @property
    def rank(self) -> int:
        """This process's place in the group."""
        return self._rank

    @property
    def size(self) -> int:
        """How many members."""
        return len(self._global_ranks)

    def sum(self, tensor: Tensor) -> Tensor:
        """All-reduce of a copy."""
        total = tensor.clone()
        self._together("sum", lambda: dist.all_reduce(total, group=self._group))
        return total

    def broadcast(self, value: Any, source: int) -> Any:
        """Pickled on one, unpickled on the others; the source gets its own value back."""
        box = [value]
        origin = self._global_ranks[source]
        self._together(
            "broadcast", lambda: dist.broadcast_object_list(box, origin, self._group), peer=source
        )
        return value if source == self._rank else box[0]

    def gather(self, value: Any) -> list[Any] | None:
        """Pickled everywhere, unpickled on rank 0."""
        found: list[Any] | None = [None] * self.size if self._rank == 0 else None
        target = self._global_ranks[0]
        self._together("gather", lambda: dist.gather_object(value, found, target, self._group))
        return found

    def barrier(self) -> None:
        """A barrier of the backend."""
        self._together("barrier", lambda: dist.barrier(self._group))

    def _together(self, what: str, call: Callable[[], object], *, peer: int = UNKNOWN) -> None:
        try:
            call()
        except RuntimeError as error:
            other = 1 - self._rank if self.size == 2 else peer
            raise TransportError(
                f"all {self.size} ranks must take part in a {what}, but one is gone or hangs. See "
                f"why that rank ended. ({error})",
                peer=other,
                key=what,
            ) from error
