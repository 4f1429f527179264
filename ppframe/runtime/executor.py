"""Executor: a lowered schedule bound to runners, as one list of calls in proven order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from ppframe.errors import InternalError, PPFrameError, StageError
from ppframe.runtime.clock import Clock
from ppframe.runtime.result import ActionTime
from ppframe.runtime.runner import StageRunner
from ppframe.schedule import (
    Action,
    ActionKind,
    Compute,
    Exchange,
    LoweredSchedule,
    Overlap,
    Reduce,
    Transfer,
    execution_order,
)
from ppframe.transport import Direction, Message

Call = tuple[Callable[[Any], None], Any]
Wrap = Callable[[int, Callable[[Any], None]], Callable[[Any], None]]
"""(rank, function) → the function as it must run on that rank's streams."""


Half = Callable[[], None]
"""One half of an overlapped pair."""
RunPair = Callable[[Half, Half], None]
"""How the halves of an overlapped pair run: calls each once, in any order or at the same time."""


def in_turn(first: Half, second: Half) -> None:
    """One half after the other."""
    first()
    second()


@final
class Executor:
    """Walks all ranks of one process, one action after the other.

    The order is the one in which `verify` proved that the schedule ends; nothing of the schedule is
    looked at while walking. The first exception ends the walk.

    Args:
        lowered: the schedule to execute, verified.
        runners: for each chain the runner of each stage.
        forward_only: whether the plan has no backward, so that nothing need be kept.
        run_pair: runs overlapped pairs.
        here: the only rank to walk, where the others are walked elsewhere; None walks all.
        wrap: puts calls on a rank's streams; None where there are none.
    """

    def __init__(
        self,
        lowered: LoweredSchedule,
        runners: Sequence[Sequence[StageRunner]],
        *,
        here: int | None = None,
        forward_only: bool = False,
        run_pair: RunPair = in_turn,
        wrap: Wrap | None = None,
    ) -> None:
        self.lowered = lowered
        self._runners = runners
        self._forward_only = forward_only
        self._run_pair = run_pair
        self._actions: list[tuple[int, Action]] = []
        self._calls: list[Call] = []
        self._receives: list[Message] = []
        ordered = _in_order(lowered) if here is None else _in_order_of(lowered, here)
        for rank, action in ordered:
            for function, argument in self._bind(rank, action):
                self._actions.append((rank, action))
                self._calls.append((function if wrap is None else wrap(rank, function), argument))

    @property
    def receives(self) -> Sequence[Message]:
        """The messages that the walk receives, in order."""
        return self._receives

    def run(self) -> None:
        """Walk the list.

        Raises:
            StageError: an action raised; names it, its rank and stage, and holds the cause.
        """
        index = 0
        try:
            for index, (function, argument) in enumerate(self._calls):  # noqa: B007
                function(argument)
        except Exception as error:
            raise _failure(*self._actions[index], error) from error

    def run_recorded(self, clock: Clock) -> tuple[ActionTime, ...]:
        """Walk the list and note when each action starts and ends.

        Raises:
            StageError: as `run`.
        """
        index = 0
        marks = []
        clock.begin()
        try:
            for index, (function, argument) in enumerate(self._calls):
                rank = self._actions[index][0]
                start = clock.mark(rank)
                function(argument)
                marks.append((start, clock.mark(rank)))
        except Exception as error:
            raise _failure(*self._actions[index], error) from error
        return tuple(
            ActionTime(rank, action, clock.seconds(rank, start), clock.seconds(rank, end))
            for (rank, action), (start, end) in zip(self._actions, marks, strict=True)
        )

    def _bind(self, rank: int, action: Action) -> list[Call]:
        match action:
            case Compute():
                return [(self._compute(action), action.microbatch)]
            case Transfer():
                function, message = self._transfer(action)
                if action.kind in (ActionKind.RECV_F, ActionKind.RECV_B):
                    self._receives.append(message)
                return [(function, message)]
            case Overlap():
                halves = self._half(rank, action.first), self._half(rank, action.second)
                return [(lambda pair: self._run_pair(*pair), halves)]
            case Reduce():
                return []
        raise InternalError(f"action {action} must be one that runs, but is {type(action)}.")

    def _half(self, rank: int, action: Compute) -> Half:
        """A computation that needs no argument, and says itself which one failed."""
        function, microbatch = self._compute(action), action.microbatch

        def run() -> None:
            try:
                function(microbatch)
            except Exception as error:
                raise _failure(rank, action, error) from error

        return run

    def _runner(self, action: Compute | Transfer) -> StageRunner:
        return self._runners[self.lowered.chain(action.microbatch)][action.stage]

    def _compute(self, action: Compute) -> Callable[[int], None]:
        runner = self._runner(action)
        match action.kind:
            case ActionKind.F:
                return runner.infer if self._forward_only else runner.forward
            case ActionKind.B:
                return runner.backward_input
            case ActionKind.W:
                return runner.backward_weight
        return runner.backward

    def _transfer(self, action: Transfer) -> tuple[Callable[[Message], None], Message]:
        stage, microbatch = action.stage, action.microbatch
        rank_of = self.lowered.rank_of
        runner = self._runner(action)

        def message(direction: Direction, sending: int, receiving: int) -> Message:
            sender, receiver = rank_of(sending, microbatch), rank_of(receiving, microbatch)
            return Message(direction, sending, receiving, microbatch, sender, receiver)

        match action.kind:
            case ActionKind.SEND_F:
                return runner.send_forward, message(Direction.FORWARD, stage, stage + 1)
            case ActionKind.RECV_F:
                return runner.receive_forward, message(Direction.FORWARD, stage - 1, stage)
            case ActionKind.SEND_B:
                return runner.send_backward, message(Direction.BACKWARD, stage, stage - 1)
        return runner.receive_backward, message(Direction.BACKWARD, stage + 1, stage)


def _failure(rank: int, action: Action, error: Exception) -> PPFrameError:
    """The error that names the action in which another one was raised."""
    if isinstance(error, StageError | InternalError):
        return error
    return StageError(rank=rank, stage=action.stage, action=action, cause=error)


def _in_order_of(lowered: LoweredSchedule, rank: int) -> list[tuple[int, Action]]:
    """The actions of one rank, exchanges as their send and then their receive."""
    ordered: list[tuple[int, Action]] = []
    for action in lowered.actions[rank]:
        halves = (action.send, action.receive) if isinstance(action, Exchange) else (action,)
        ordered.extend((rank, half) for half in halves)
    return ordered


def _in_order(lowered: LoweredSchedule) -> list[tuple[int, Action]]:
    """The actions in the order of the walk; exchanges as their sends, then their receives.

    The two halves of an exchange stand next to each other in the proven order. One controller
    must send both ways before it can receive either.
    """
    ordered: list[tuple[int, Action]] = []
    receives: list[tuple[int, Action]] = []
    for rank, index in execution_order(lowered):
        action = lowered.actions[rank][index]
        if isinstance(action, Exchange):
            ordered.append((rank, action.send))
            receives.append((rank, action.receive))
            if len(receives) == 2:
                ordered.extend(receives)
                receives.clear()
        else:
            ordered.append((rank, action))
    return ordered
