"""All ranks of one process: stages with their buffers, walked by one controller thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, final

import torch
from torch import Tensor, nn

from ppframe.runtime.assembly import assemble
from ppframe.runtime.clock import Clock
from ppframe.runtime.executor import Executor, RunPair, in_turn
from ppframe.runtime.head import LossHead
from ppframe.runtime.layout import Layout
from ppframe.runtime.result import ActionTime
from ppframe.runtime.streams import RankStreams
from ppframe.schedule import LoweredSchedule
from ppframe.stage import Stage, boundary
from ppframe.stage.randomness import generators_of
from ppframe.transport import LocalTransport, Transport


@final
@dataclass(frozen=True, slots=True)
class Batch:
    """A batch in microbatches.

    Args:
        sizes: samples of each microbatch.
        inputs: inputs of each microbatch.
        arguments: keyword arguments of each microbatch.
        chains: chain of each microbatch, as its schedule has it; empty where all take chain 0.
    """

    sizes: tuple[int, ...]
    inputs: list[Any]
    arguments: list[dict[str, Any]]
    chains: tuple[int, ...] = ()

    def of_chain(self, chain: int) -> list[int]:
        """The microbatches that take a chain."""
        padded = (*self.chains, *(0,) * (len(self.sizes) - len(self.chains)))
        return [microbatch for microbatch, taken in enumerate(padded) if taken == chain]


@final
class LocalRanks:
    """The ranks of a pipeline that live in this process.

    Args:
        modules: modules of the unsplit model.
        layout: which stage has which modules and rank, and which ranks are here.
        devices: device of each rank.
        make_stage: `Stage` with what all stages have in common.
        head: the loss, at the end of the last stage.
        transport: carries messages between ranks; None makes one for these devices.
    """

    def __init__(
        self,
        modules: Sequence[nn.Module],
        layout: Layout,
        devices: tuple[torch.device, ...],
        *,
        make_stage: Callable[..., Stage],
        head: LossHead,
        transport: Transport | None = None,
    ) -> None:
        self.devices = devices
        self._layout = layout
        self.streams = RankStreams(devices)
        move = None if len(set(devices)) == 1 and not self.streams.is_cuda else self.streams.move
        self.transport = LocalTransport(move) if transport is None else transport
        self._chains, self._replicas = assemble(
            modules,
            layout,
            devices,
            make_stage=make_stage,
            head=head,
            transport=self.transport,
        )
        self._runners = list(chain.from_iterable(self._chains))
        stages = (runner.stage for runner in self._chains[0])
        self.argument_names = frozenset().union(*(stage.argument_names for stage in stages))

    def bind(
        self, lowered: LoweredSchedule, forward_only: bool, run_pair: RunPair = in_turn
    ) -> Executor:
        """The executor of a schedule on these ranks."""
        wrap = self.streams.wrap if self.streams.is_cuda else None
        return Executor(
            lowered,
            self._chains,
            here=None if self._layout.here is None else self._layout.here[0],
            forward_only=forward_only,
            run_pair=run_pair,
            wrap=wrap,
        )

    @contextmanager
    def stepping(
        self, batch: Batch, step: int, auxiliary_weights: Sequence[float]
    ) -> Iterator[None]:
        """What surrounds a walk: inputs in place before, everything released after.

        The generators that modules draw from are put back, so a step doesn't disturb the caller's
        randomness.
        """
        states = [(generator, generator.get_state()) for generator in self._generators()]
        if torch.is_autocast_enabled(self.devices[0].type):
            torch.clear_autocast_cache()
        if batch.chains:
            self._replicas.refresh()
        for runner in self._runners:
            runner.begin_step(self._placed(batch.arguments, runner.stage))
            runner.stage.begin_step(step, auxiliary_weights)
        for number, (first, *_) in enumerate(self._chains):
            if not self._layout.is_here(self._layout.chains[number][0]):
                continue
            own = batch.of_chain(number)
            inputs = self._placed([batch.inputs[microbatch] for microbatch in own], first.stage)
            first.activations.update(zip(own, inputs, strict=True))
        self.streams.begin_step()
        try:
            yield
            self._require_empty()
            if batch.chains:
                self._replicas.gather()
        except BaseException:
            self.transport.release()
            raise
        finally:
            self.release()
            for generator, state in states:
                generator.set_state(state)

    def run(self, executor: Executor, *, record: bool) -> tuple[ActionTime, ...] | None:
        """Walk a training step."""
        clock = self.streams.clock() if record else None
        return self._walk(executor, clock)

    def run_forward(self, executor: Executor, head: LossHead) -> None:
        """Walk a step without backward; each output goes to the loss and is gone."""
        for runners in self._chains:
            runners[-1].finish_with(_ToLoss(head))
        self._walk(executor)

    def run_output(self, executor: Executor, sizes: tuple[int, ...]) -> Any:
        """Walk a step without backward and join the outputs; None where they end elsewhere."""
        outputs: dict[int, Any] = {}
        for runners in self._chains:
            runners[-1].finish_with(outputs)
        self._walk(executor)
        if not outputs:
            return None
        return boundary.join([outputs[index] for index in range(len(sizes))], sizes)

    def auxiliary_total(self, weights: Sequence[float]) -> Tensor:
        """Weighted sum of the auxiliary losses of all stages here; 0-dim, in double precision."""
        total = torch.zeros((), dtype=torch.float64, device=self._chains[0][-1].stage.device)
        for runner in self._runners:
            for microbatch in sorted(runner.auxiliary):
                for value in runner.auxiliary[microbatch]:
                    total += value.to(total) * weights[microbatch]
        return total

    def on_last_device(self, values: Sequence[Any], chains: Sequence[int] = ()) -> Sequence[Any]:
        """The values where the last stage runs, each on its chain; chain 0 where none is given."""
        placed = list(self._placed(values, self._chains[0][-1].stage))
        for index, number in enumerate(chains):
            if number:
                placed[index] = self._placed([values[index]], self._chains[number][-1].stage)[0]
        return placed

    def release(self) -> None:
        """Drop all that the ranks hold of a step."""
        self._replicas.release()
        for runner in self._runners:
            runner.release()

    def _walk(
        self, executor: Executor, clock: Clock | None = None
    ) -> tuple[ActionTime, ...] | None:
        timeline = None
        self.transport.expect(executor.receives)
        if clock is None:
            executor.run()
        else:
            timeline = executor.run_recorded(clock)
        self.transport.finish()
        self.streams.end_step()  # what follows, such as the batch's loss, reads what ranks made
        return timeline

    def _placed(self, values: Sequence[Any], stage: Stage) -> Sequence[Any]:
        """The values on the stage's device; where all ranks are the CPU they are there already."""
        if not self.streams.is_cuda:
            return values
        return [
            boundary.map_tensors(lambda t: t.to(stage.device, non_blocking=True), value)
            for value in values
        ]

    def _require_empty(self) -> None:
        for runner in self._runners:
            for buffer in runner.buffers():
                buffer.require_empty()

    def _generators(self) -> set[torch.Generator]:
        return {generator for device in self.devices for generator in generators_of(device)}


@final
class _ToLoss:
    """Takes outputs by index, as a buffer does, and keeps only their losses."""

    def __init__(self, head: LossHead) -> None:
        self._head = head

    def __setitem__(self, microbatch: int, output: Any) -> None:
        self._head(microbatch, output)
