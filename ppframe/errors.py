"""Every exception of the project.

::

    PPFrameError                    whatever ppframe raises on purpose
    ├── ConfigError                 the configuration can't be run; holds every fault found
    ├── ScheduleError               a schedule is not legal; names rank, step and action
    │   ├── IncompleteSchedule      an action is missing, doubled, or on the wrong rank
    │   ├── DependencyViolation     an action stands before one that it needs
    │   ├── Deadlock                no rank can go on
    │   ├── UnmatchedTransfer       a send without its receive, or in another order
    │   └── ScheduleSyntaxError     a text that is no schedule; names line and column
    ├── PartitionError              modules can't be shared out over the stages
    ├── StageError                  a stage raised while it ran; names rank, stage and action
    ├── TransportError              a message could not be delivered
    ├── EngineError                 a process of a rank ended that should not have
    ├── CheckpointError             a checkpoint can't be written or read
    └── InternalError               a fault of ppframe itself

Messages say what must hold, what it is, and what to change. The values in a message are kept as
attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final


class PPFrameError(Exception):
    """Whatever ppframe raises on purpose."""


@final
@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a configuration.

    Args:
        path: dotted path of the value, such as `pipeline.ranks`; empty for the whole.
        message: what must hold, what it is, what to change.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@final
class ConfigError(PPFrameError):
    """The configuration can't be run.

    Args:
        faults: every fault found, or one message.
        path: dotted path for a single message.
    """

    def __init__(self, faults: str | Sequence[Fault], *, path: str = "") -> None:
        self.faults = (Fault(path, faults),) if isinstance(faults, str) else tuple(faults)
        self.path = self.faults[0].path if self.faults else path
        if len(self.faults) == 1:
            text = str(self.faults[0])
        else:
            lines = (f"  {number}. {fault}" for number, fault in enumerate(self.faults, 1))
            text = "\n".join((f"{len(self.faults)} faults in the configuration:", *lines))
        super().__init__(text)


class ScheduleError(PPFrameError):
    """A schedule is not legal.

    Args:
        message: what must hold, what it is, what to change.
        rank: pipeline rank whose list holds the fault, if one does.
        step: index in that rank's list, from 0.
        action: the action at fault, as printed.
    """

    def __init__(
        self,
        message: str,
        *,
        rank: int | None = None,
        step: int | None = None,
        action: object = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.step = step
        self.action = None if action is None else str(action)


@final
class IncompleteSchedule(ScheduleError):
    """An action is missing, stands twice, or stands on a rank that doesn't own its stage."""


@final
class DependencyViolation(ScheduleError):
    """An action stands before one that it needs."""


@final
class Deadlock(ScheduleError):
    """No rank can go on; the message names what each rank waits for."""


@final
class UnmatchedTransfer(ScheduleError):
    """A send without its receive, a receive without its send, or the two in another order."""


@final
class ScheduleSyntaxError(ScheduleError):
    """A text that is no schedule.

    Args:
        message: what was expected, and what stands there.
        line: line number from 1.
        column: column number from 1.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int = 1,
        column: int = 1,
        rank: int | None = None,
        step: int | None = None,
        action: object = None,
    ) -> None:
        super().__init__(message, rank=rank, step=step, action=action)
        self.line = line
        self.column = column


@final
class PartitionError(PPFrameError):
    """Modules can't be shared out over the stages as asked."""


@final
class StageError(PPFrameError):
    """A stage raised while it ran; the original error is the cause.

    Args:
        rank: pipeline rank on which it happened.
        stage: the stage that ran.
        action: the action that failed, as printed.
        cause: the original exception.
    """

    def __init__(self, *, rank: int, stage: int, action: object, cause: BaseException) -> None:
        self.rank = rank
        self.stage = stage
        self.action = str(action)
        self.cause = cause
        super().__init__(
            f"action {action} of stage {stage} on rank {rank} must run to its end, but raised "
            f"{type(cause).__name__}: {cause}"
        )


@final
class TransportError(PPFrameError):
    """A message could not be delivered.

    Args:
        message: what must hold, what it is, what to change.
        peer: rank at the other end.
        key: what was to travel, as printed.
    """

    def __init__(self, message: str, *, peer: int, key: object) -> None:
        super().__init__(message)
        self.peer = peer
        self.key = str(key)


@final
class EngineError(PPFrameError):
    """A process of a rank ended that should not have.

    Args:
        message: what must hold, what it is, what to change.
        rank: pipeline rank of the process.
    """

    def __init__(self, message: str, *, rank: int) -> None:
        super().__init__(message)
        self.rank = rank


@final
class CheckpointError(PPFrameError):
    """A checkpoint can't be written or read.

    Args:
        message: what must hold, what it is, what to change.
        path: file or folder of the checkpoint.
    """

    def __init__(self, message: str, *, path: object) -> None:
        super().__init__(message)
        self.path = str(path)


@final
class InternalError(PPFrameError):
    """A fault of ppframe itself; the message asks for a report."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} This is a fault of ppframe: please report it with this text.")
