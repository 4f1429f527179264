"""What the stages of a model cost on the devices they run on: time, memory, latency of a hop."""

from __future__ import annotations

import platform
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

import torch
from torch import nn

from ppframe.data.base import Batch
from ppframe.runtime import Pipeline
from ppframe.runtime.chain import Kind, StageChain
from ppframe.runtime.clock import Clock
from ppframe.stage import boundary
from ppframe.stage.batch_loss import LossFunction
from ppframe.training.held import Held, measure_held, weight_bytes
from ppframe.training.optim import OptimizerFactory
from ppframe.training.untouched import untouched

_T = TypeVar("_T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """What is measured, and how often.

    Args:
        microbatch_size: samples of a microbatch.
        seed: seed of the model's random streams.
        warm_up: passes through all stages that are not counted.
        repeats: passes that are; a time is the median over them.
    """

    microbatch_size: int
    seed: int = 0
    warm_up: int = 5
    repeats: int = 30


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """How long one stage takes for a microbatch: medians, in seconds.

    Args:
        forward_s: duration of F; with the loss, for the last stage.
        backward_input_s: duration of B.
        backward_weight_s: duration of W.
        backward_s: duration of BW, both in one pass.
        transfer_s: latency of a hop; the mean over what the stage sends, its output and the
            gradient of its input. 0 where it sends nothing.
    """

    forward_s: float
    backward_input_s: float
    backward_weight_s: float
    backward_s: float
    transfer_s: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """What one stage costs.

    Args:
        times: how long its actions take.
        held: what a microbatch holds in its memory.
        weight_bytes: its parameters, buffers, gradients and state of the optimizer.
        num_waiting_weights: parameters whose gradients W computes; B computes the others.
    """

    times: StageTimes
    held: Held
    weight_bytes: int
    num_waiting_weights: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What stages run on.

    Args:
        devices: name of the device of each rank.
        threads: threads of an operation on the CPU.
        torch: version of torch.
    """

    devices: tuple[str, ...]
    threads: int
    torch: str


def machine_of(devices: Sequence[torch.device]) -> Machine:
    """The machine of this process, with these devices for its ranks."""
    return Machine(
        devices=tuple(map(_device_name, devices)),
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),
    )


def microbatch_shapes(inputs: Any, microbatch_size: int) -> tuple[str, ...]:
    """Type and shape of each tensor of a microbatch's inputs, such as `int64 [4, 64]`."""
    return tuple(
        f"{tensor.dtype}".removeprefix("torch.") + f" {[microbatch_size, *tensor.shape[1:]]}"
        for tensor in boundary.tensors_of(inputs)
    )


def profile_stages(
    pipeline: Pipeline,
    modules: Sequence[nn.Module],
    batch: Batch,
    *,
    loss: LossFunction,
    make_optimizer: OptimizerFactory,
    settings: ProfileSettings,
) -> tuple[StageProfile, ...]:
    """Measure every stage on microbatches of a batch.

    Each pass takes a microbatch through all stages and back, so that whatever else goes on in the
    machine meets all stages alike; passes with BW and passes with B and W take turns. No parameter,
    buffer or random generator is different afterwards.

    Args:
        pipeline: says which modules make a stage and where it runs.
        modules: the pipeline's own, in forward order.
        batch: real data; a smaller last microbatch is left out.
        loss: the pipeline's own.
        make_optimizer: gives the optimizers whose state is counted; no step is made with them.
        settings: what and how often.
    """
    chain = StageChain(pipeline, modules, loss=loss, seed=settings.seed)
    with torch.enable_grad(), untouched(modules, pipeline.devices):
        try:
            num_microbatches = chain.take(batch.inputs, batch.targets, settings.microbatch_size)
            times = _measure_times(chain, num_microbatches, settings)
            held = measure_held(chain)
        finally:
            chain.release()
    return tuple(
        StageProfile(
            times=times[stage.index],
            held=held[stage.index],
            weight_bytes=weight_bytes(chain.members[stage.index], make_optimizer),
            num_waiting_weights=stage.num_waiting_weights or 0,
        )
        for stage in chain.stages
    )


def _measure_times(
    chain: StageChain, num_microbatches: int, settings: ProfileSettings
) -> list[StageTimes]:
    stopwatch = _Stopwatch()
    for number in range(settings.warm_up + settings.repeats):
        if number == settings.warm_up:
            stopwatch.times.clear()
        for split in (False, True):
            stopwatch.start(chain.clock())
            chain.run(number % num_microbatches, stopwatch, split=split)
    return [stopwatch.medians_of(stage.index) for stage in chain.stages]


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type} {platform.processor() or platform.machine()}"


@final
class _Stopwatch:
    """Notes how long each piece of work takes, until the device has done it."""

    def __init__(self) -> None:
        self.times: defaultdict[tuple[int, Kind], list[float]] = defaultdict(list)

    def start(self, clock: Clock) -> None:
        """Begin a pass."""
        self._clock = clock
        clock.begin()

    def __call__(self, rank: int, stage: int, kind: Kind, work: Callable[[], _T]) -> _T:
        """Do the work, and wait for its end."""
        clock = self._clock
        start = clock.mark(rank)
        result = work()
        end = clock.mark(rank)
        self.times[stage, kind].append(clock.seconds(rank, end) - clock.seconds(rank, start))
        return result

    def medians_of(self, stage: int) -> StageTimes:
        """The times of a stage."""
        middle = {kind: statistics.median(t) for (s, kind), t in self.times.items() if s == stage}
        hops = [middle[kind] for kind in ("send_forward", "send_backward") if kind in middle]
        return StageTimes(
            forward_s=middle["forward"],
            backward_input_s=middle["backward_input"],
            backward_weight_s=middle["backward_weight"],
            backward_s=middle["backward"],
            transfer_s=statistics.mean(hops) if hops else 0.0,
        )
