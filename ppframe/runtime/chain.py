"""The stages of a pipeline one after the other, a microbatch at a time: to measure each alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, Protocol, TypeVar, final

from torch import Tensor, nn

from ppframe.runtime.clock import Clock
from ppframe.runtime.head import LossHead
from ppframe.runtime.pipeline import Pipeline
from ppframe.runtime.streams import RankStreams
from ppframe.stage import BatchLoss, Stage, boundary
from ppframe.stage.batch_loss import LossFunction
from ppframe.stage.boundary import Gradients
from ppframe.stage.microbatch import batch_size_of, sizes_by_limit, split_batch
from ppframe.transport import Direction, LocalTransport, Message

_T = TypeVar("_T")
Kind = Literal[
    "forward", "backward_input", "backward_weight", "backward", "send_forward", "send_backward"
]


class Around(Protocol):
    """What surrounds each piece of work of a pass."""

    def __call__(self, rank: int, stage: int, kind: Kind, work: Callable[[], _T]) -> _T:
        """Do the work and give what it gives.

        Args:
            rank: the rank that works; of a hop the one that receives.
            stage: the stage; of a hop the one that sends.
            kind: what is done.
            work: does it.
        """


@final
class StageChain:
    """Stages that are no part of a schedule: each piece of work begins when the last has ended.

    ::

        F0 ─hop─ F1 ─hop─ F2         then back: BW2 ─hop─ BW1 ─hop─ BW0,
                                     or: B2 ─hop─ B1 ─hop─ B0, W2, W1, W0

    Args:
        pipeline: says which modules make a stage, on which rank and device it is, and whether it
            recomputes.
        modules: the pipeline's own, in forward order.
        loss: the pipeline's own.
        seed: seed of the random streams.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        modules: Sequence[nn.Module],
        *,
        loss: LossFunction,
        seed: int = 0,
    ) -> None:
        self._loss = BatchLoss(loss)
        self._head = LossHead(self._loss)
        self.devices = pipeline.devices
        self._streams = RankStreams(pipeline.devices)
        is_one_cpu = len(set(pipeline.devices)) == 1 and not self._streams.is_cuda
        self._transport = LocalTransport(None if is_one_cpu else self._streams.move)
        infos = pipeline.stages
        self.ranks = tuple(info.rank for info in infos)
        self.members = tuple(
            tuple((int(name), modules[int(name)]) for name in info.module_names) for info in infos
        )
        self.stages = tuple(
            Stage(
                index,
                members,
                device=pipeline.devices[rank],
                seed=seed,
                recompute=pipeline.recompute == "full",
                head=self._head if index == len(infos) - 1 else None,
            )
            for index, (rank, members) in enumerate(zip(self.ranks, self.members, strict=True))
        )
        self._inputs: Sequence[Any] = ()
        self._targets: Sequence[Any] = ()

    def take(self, inputs: Any, targets: Any, microbatch_size: int) -> int:
        """Take a batch, and say how many microbatches of full size it has.

        Args:
            inputs: of the whole batch.
            targets: likewise.
            microbatch_size: samples of a microbatch; one that is larger than the batch is cut.
        """
        num_samples = batch_size_of(inputs)
        sizes = sizes_by_limit(num_samples, min(num_samples, microbatch_size))
        self._inputs = _placed(split_batch(inputs, sizes, "inputs"), self.stages[0])
        self._targets = _placed(split_batch(targets, sizes, "targets"), self.stages[-1])
        weights = self._loss.weights(self._targets, sizes)
        self._head.begin_step(self._targets, weights)
        for stage in self.stages:
            stage.begin_step(0, weights.auxiliary)
        return sizes.count(sizes[0])

    def inputs(self, microbatch: int) -> Any:
        """What the first stage gets."""
        return self._inputs[microbatch]

    def batch_tensors(self) -> Iterable[Tensor]:
        """The tensors of the batch."""
        return boundary.tensors_of([self._inputs, self._targets])

    def clock(self) -> Clock:
        """A clock for the ranks."""
        return self._streams.clock()

    def run(self, microbatch: int, around: Around, *, split: bool) -> None:
        """Take a microbatch through all stages and back.

        Args:
            microbatch: index of a microbatch of the batch.
            around: surrounds each piece of work.
            split: run B and W instead of BW.
        """
        self._streams.begin_step()
        value = self._inputs[microbatch]
        for stage in self.stages:
            forward = partial(stage.forward, microbatch, value, {})
            value, _ = self._work(stage, "forward", forward, around)
            if stage is not self.stages[-1]:
                value = self._hop(Direction.FORWARD, stage.index, microbatch, value, around)
        gradients: Gradients = ()
        for stage in reversed(self.stages):
            run = stage.backward_input if split else stage.backward
            backward = partial(run, microbatch, gradients)
            kind: Kind = "backward_input" if split else "backward"
            gradients = self._work(stage, kind, backward, around)
            if stage is not self.stages[0]:
                gradients = self._hop(
                    Direction.BACKWARD, stage.index, microbatch, gradients, around
                )
        for stage in reversed(self.stages) if split else ():
            weight = partial(stage.backward_weight, microbatch)
            self._work(stage, "backward_weight", weight, around)
        self._streams.end_step()

    def release(self) -> None:
        """Drop all that is held of the batch and of a pass, after a failure too."""
        self._inputs, self._targets = (), ()
        self._head.release()
        self._transport.release()
        for stage in self.stages:
            stage.release()

    def _work(self, stage: Stage, kind: Kind, work: Callable[[], _T], around: Around) -> _T:
        rank = self.ranks[stage.index]
        return around(rank, stage.index, kind, partial(self._on_rank, rank, work))

    def _on_rank(self, rank: int, work: Callable[[], _T]) -> _T:
        """Do the work on the rank's stream, where there are streams."""
        if not self._streams.is_cuda:
            return work()
        results: list[_T] = []
        self._streams.wrap(rank, lambda _: results.append(work()))(None)
        return results[0]

    def _hop(
        self, direction: Direction, stage: int, microbatch: int, value: Any, around: Around
    ) -> Any:
        """Send what a stage made to the next one, or back to the one before."""
        following = stage + (1 if direction is Direction.FORWARD else -1)
        sender, receiver = self.ranks[stage], self.ranks[following]
        message = Message(direction, stage, following, microbatch, sender, receiver)

        def travel() -> Any:
            self._transport.send(message, value)
            return self._transport.receive(message)

        kind: Kind = "send_forward" if direction is Direction.FORWARD else "send_backward"
        return around(receiver, stage, kind, travel)


def _placed(values: Sequence[Any], stage: Stage) -> list[Any]:
    """The values on the stage's device."""
    return [boundary.map_tensors(lambda t: t.to(stage.device), value) for value in values]
