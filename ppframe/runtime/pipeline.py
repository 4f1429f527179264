"""Pipeline: the library's door. A model in pieces, trained step by step under a schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, Self, TypeAlias, final

import torch
from torch import nn

from ppframe.errors import ConfigError
from ppframe.runtime.executor import RunPair, in_turn
from ppframe.runtime.head import LossHead
from ppframe.runtime.layout import (
    Devices,
    make_layout,
    modules_of,
    place_modules,
    rank_devices,
)
from ppframe.runtime.member import Member
from ppframe.runtime.outside import cut_off
from ppframe.runtime.plans import Plan, Plans
from ppframe.runtime.result import ActionTime, StageInfo, StepResult
from ppframe.runtime.sizes import MicrobatchSizes
from ppframe.runtime.state import ModelState, NamedParameters
from ppframe.runtime.walk import Batch, LocalRanks
from ppframe.schedule import LoweredSchedule, Schedule
from ppframe.stage import BatchLoss, Stage
from ppframe.stage.batch_loss import LossFunction, LossWeights
from ppframe.stage.microbatch import ArgumentSplitter, Rule, batch_size_of, split_batch
from ppframe.stage.partition import Partition
from ppframe.transport import Alone, Peers

_ALONE = Alone()

Recompute: TypeAlias = Literal["none", "full"]


@final
class Pipeline:
    """Trains a model that is cut into stages, with the unsplit model's loss and gradients.

        rank 0   F0  F1  F2  BW0 F3  BW1 ...      each rank runs its stages' actions
        rank 1       F0  BW0 F1  BW1 F2  ...      in the order of the schedule

    All ranks live in this process; one thread walks their actions in proven order. A tuple that
    one module returns reaches the next as positional arguments, anything else as its one argument;
    `inputs` likewise. Use it as a context, or call `close`.

    Args:
        stages: modules in forward order, moved to their rank's device, otherwise left as they are.
        loss: (output, target) → 0-dim tensor. Losses of torch with `mean` keep their own
            denominator over the whole batch, with `sum` they are added; any other callable counts
            as a mean over samples, unless it has `denominator(target)`.
        schedule: name of a generator, or a `Schedule`.
        ranks: number of pipeline ranks; None takes what modules and chunks give.
        microbatch_size: samples of a microbatch; the last one may be smaller. Give either this or
            `num_microbatches`; with a `Schedule` both may be left out.
        num_microbatches: microbatches of every batch; their sizes differ by at most one.
        chunks_per_rank: stages of each rank; None means `len(stages) / ranks`.
        devices: one device for all ranks, one for each, or None to leave modules where they are.
            A schedule of two chains needs every stage on two ranks; where those have two devices,
            the second runs a copy that follows the first.
        partition: how modules are grouped when there are more of them than stages: `even` (the
            default), `parameters`, or a list of counts.
        argument_rules: for keyword arguments of `step`: `Split(dim)` or `Replicate()` by name.
        recompute: `none`, or `full`: a stage keeps only its input between forward and backward,
            and runs its forward a second time in the backward.
        run_pair: runs the halves of an overlapped pair, which schedules such as `dualpipe-v` have:
            gets two functions without arguments, calls each once, in any order or, on streams of
            its own, at the same time. By default one after the other.
        seed: seed of dropout and other randomness of the forward pass.
        member: this process, where each rank is a process; all of them make the same pipeline, and
            call the same methods with the same batches. Each has parameters of its own rank only;
            losses, outputs and `state_dict` are those of the whole on all.

    Raises:
        ConfigError: arguments that contradict each other.
        PartitionError: the modules can't be shared out.
        ScheduleError: the schedule isn't legal, or doesn't take these numbers.

    Example:
        >>> model = [nn.Linear(4, 4), nn.Linear(4, 2)]
        >>> with Pipeline(model, loss=nn.MSELoss(), schedule="1f1b", ranks=2,
        ...               microbatch_size=2) as pipe:
        ...     result = pipe.step(torch.ones(6, 4), torch.zeros(6, 2))
        >>> len(result.microbatch_losses)
        3
    """

    def __init__(  # noqa: PLR0913 - the library's door takes all a user may set
        self,
        stages: Sequence[nn.Module],
        *,
        loss: LossFunction,
        schedule: str | Schedule = "dora-dfs",
        ranks: int | None = None,
        microbatch_size: int | None = None,
        num_microbatches: int | None = None,
        chunks_per_rank: int | None = None,
        devices: Devices = None,
        partition: Partition | None = None,
        argument_rules: Mapping[str, Rule] | None = None,
        recompute: Recompute = "none",
        run_pair: RunPair = in_turn,
        seed: int = 0,
        member: Member | None = None,
    ) -> None:
        if recompute not in ("none", "full"):
            raise ConfigError(f"must be `none` or `full`, but is `{recompute}`.", path="recompute")
        modules = modules_of(stages)
        self._layout = make_layout(
            modules, schedule, ranks=ranks, chunks_per_rank=chunks_per_rank, partition=partition
        )
        self._member = member
        if member is not None:
            self._layout = self._layout.in_process_of(member.rank)
        device_of_rank = rank_devices(modules, self._layout, devices)
        if devices is not None or member is not None:
            place_modules(modules, self._layout, device_of_rank)
        self._model = nn.Sequential(*modules)
        self._state = ModelState(self._model, self._layout, self.peers)
        self._loss = BatchLoss(loss)
        if isinstance(loss, nn.Module):
            loss.to(device_of_rank[self._layout.placement[-1]])
        self._head = LossHead(self._loss)
        self._ranks = LocalRanks(
            modules,
            self._layout,
            device_of_rank,
            make_stage=partial(Stage, seed=seed, recompute=recompute == "full"),
            head=self._head,
            transport=None if member is None else member.transport,
        )
        self.recompute: Recompute = recompute
        bind = partial(self._ranks.bind, run_pair=run_pair)
        self._plans = Plans(schedule, self._layout, bind)
        self._sizes = MicrobatchSizes(self._plans, microbatch_size, num_microbatches)
        self._arguments = ArgumentSplitter(argument_rules or {})
        self._closed = False
        self.steps_done = 0
        self.record = False

    # What the pipeline is made of

    @property
    def ranks(self) -> int:
        """Number of pipeline ranks."""
        return self._layout.ranks

    @property
    def chunks_per_rank(self) -> int:
        """Stages of each rank."""
        return self._layout.chunks_per_rank

    @property
    def num_stages(self) -> int:
        """Number of stages."""
        return len(self._layout.modules)

    @property
    def devices(self) -> tuple[torch.device, ...]:
        """Device of each rank."""
        return self._ranks.devices

    @property
    def runs_side_by_side(self) -> bool:
        """Whether ranks run at the same time; those on the CPU of one process take turns."""
        return self._member is not None or all(device.type == "cuda" for device in self.devices)

    @property
    def peers(self) -> Peers:
        """What the processes of the pipeline do together; there may be one."""
        return _ALONE if self._member is None else self._member.peers

    @property
    def stages(self) -> tuple[StageInfo, ...]:
        """Each stage's rank, modules and size."""
        return tuple(self._stage_info(stage) for stage in range(self.num_stages))

    def schedule(self, num_microbatches: int) -> Schedule:
        """The schedule that a step with this many microbatches executes."""
        return self._plans.training(num_microbatches).schedule

    def lowered(self, num_microbatches: int) -> LoweredSchedule:
        """The same with communication: what is executed."""
        return self._plans.training(num_microbatches).lowered

    # Training and evaluation

    def step(self, inputs: Any, targets: Any, **arguments: Any) -> StepResult:
        """Forward and backward of one batch; gradients are added to `.grad`.

        Args:
            inputs: nested structure; tensors have the batch's size on dim 0.
            targets: likewise; each microbatch's part goes to the loss.
            arguments: go to every module whose `forward` names them, cut or replicated by rule.

        Returns:
            the losses; with `record` set, also when each action ran. `record` is then cleared.

        Raises:
            StageError: an action raised. Parameters' gradients are then incomplete.
            ConfigError: the batch can't be cut as asked, or inference mode is on.
        """
        if torch.is_inference_mode_enabled():
            raise ConfigError(
                "must be off in a training step, as no gradient can be had in it.",
                path="torch.inference_mode",
            )
        sizes = self._sizes.for_step(batch_size_of(inputs))
        plan = self._plans.training(len(sizes))
        record, self.record = self.record, False
        with torch.enable_grad(), cut_off(inputs, targets, arguments) as (given, wanted, named):
            batch = self._cut(given, sizes, named, plan.schedule.chains)
            result = self._stepped(plan, batch, wanted, record=record)
        self.steps_done += 1
        return result

    def _stepped(self, plan: Plan, batch: Batch, targets: Any, *, record: bool) -> StepResult:
        with self._with_loss(batch, targets, self.steps_done) as weights:
            if record:
                self.peers.barrier()  # clocks of all processes start together
            timeline = self._ranks.run(plan.executor, record=record)
            return self._result(weights, timeline)

    def evaluate(self, inputs: Any, targets: Any, **arguments: Any) -> StepResult:
        """Loss of one batch, forward only, every module in eval mode. Arguments as `step`."""
        sizes = self._sizes.for_forward(batch_size_of(inputs))
        plan = self._plans.forward(len(sizes))
        batch = self._cut(inputs, sizes, arguments)
        with torch.no_grad(), self._eval_mode(), self._with_loss(batch, targets, -1) as weights:
            self._ranks.run_forward(plan.executor, self._head)
            return self._result(weights, None)

    def forward(self, inputs: Any, **arguments: Any) -> Any:
        """Output for the whole batch, forward only, every module in eval mode.

        Returns:
            the microbatches' outputs joined on dim 0; 0-dim tensors are stacked to shape [M].
        """
        sizes = self._sizes.for_forward(batch_size_of(inputs))
        plan = self._plans.forward(len(sizes))
        batch = self._cut(inputs, sizes, arguments)
        no_weights = (0.0,) * len(sizes)
        with torch.no_grad(), self._eval_mode(), self._ranks.stepping(batch, -1, no_weights):
            output = self._ranks.run_output(plan.executor, sizes)
        return self.peers.broadcast(output, self._layout.placement[-1])

    # Parameters and state, under the names of `nn.Sequential(*stages)`

    def parameters(self) -> Iterator[nn.Parameter]:
        """All parameters, each once; in a process of its own a rank has its own only."""
        return (parameter for _, parameter in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Parameters with the unsplit model's names; a shared one stands once."""
        return self._state.named_parameters()

    def parameters_by_rank(self) -> tuple[NamedParameters, ...]:
        """For each rank the parameters it owns; a shared one belongs to its first stage's rank."""
        return self._state.by_rank()

    def state_dict(self) -> dict[str, Any]:
        """The whole model's parameters and buffers; a shared one stands under each of its names."""
        return self._state.whole()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what `state_dict` gave, on this or another layout.

        Raises:
            CheckpointError: names or shapes differ.
        """
        self._state.load(state)

    def train(self, mode: bool = True) -> Self:
        """Set every module's training flag, as `nn.Module.train` does."""
        self._model.train(mode)
        return self

    def eval(self) -> Self:
        """Set every module to eval mode."""
        return self.train(False)

    # The end

    def close(self) -> None:
        """Release what the pipeline holds; the modules stay as they are."""
        self._ranks.release()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # How a step is put together

    def _cut(
        self,
        inputs: Any,
        sizes: tuple[int, ...],
        arguments: Mapping[str, Any],
        chains: tuple[int, ...] = (),
    ) -> Batch:
        if self._closed:
            raise ConfigError("must be open, but was closed. Make a new one.", path="pipeline")
        unknown = sorted(arguments.keys() - self._ranks.argument_names)
        if unknown:
            raise ConfigError(
                f"must be named by some module's forward, but {unknown} are not. Known: "
                f"{sorted(self._ranks.argument_names)}.",
                path="arguments",
            )
        return Batch(
            sizes=sizes,
            inputs=split_batch(inputs, sizes, "inputs"),
            arguments=self._arguments.split(arguments, sizes),
            chains=chains,
        )

    @contextmanager
    def _with_loss(self, batch: Batch, targets: Any, step: int) -> Iterator[LossWeights]:
        """Give ranks and loss what the step needs; leave nothing behind, whatever happens."""
        cut = self._ranks.on_last_device(split_batch(targets, batch.sizes, "targets"))
        weights = self._loss.weights(cut, batch.sizes)
        self._head.begin_step(self._ranks.on_last_device(cut, batch.chains), weights)
        try:
            with self._ranks.stepping(batch, step, weights.auxiliary):
                yield weights
        finally:
            self._head.release()

    def _result(self, weights: LossWeights, timeline: tuple[ActionTime, ...] | None) -> StepResult:
        auxiliary = self._ranks.auxiliary_total(weights.auxiliary)
        if self._member is not None:
            auxiliary = self._head.complete(len(weights.gradient), auxiliary, self.peers)
            timeline = self._timeline_of_all(timeline)
        loss, alone = self._head.result()
        return StepResult(loss, alone, auxiliary.to(loss), timeline)

    def _timeline_of_all(
        self, timeline: tuple[ActionTime, ...] | None
    ) -> tuple[ActionTime, ...] | None:
        """The times of all processes, in the first one; None in the others."""
        parts = None if timeline is None else self.peers.gather(timeline)
        if parts is None:
            return None
        return tuple(sorted(chain.from_iterable(parts), key=attrgetter("start_s")))

    @contextmanager
    def _eval_mode(self) -> Iterator[None]:
        """Every module in eval mode, then each as it was."""
        modules = [module for module in self._model.modules() if module.training]
        for module in modules:
            module.training = False
        try:
            yield
        finally:
            for module in modules:
                module.training = True

    def _stage_info(self, stage: int) -> StageInfo:
        members = self._layout.modules[stage]
        parameters = {p for member in members for p in self._model[member].parameters()}
        return StageInfo(
            index=stage,
            rank=self._layout.placement[stage],
            module_names=tuple(str(member) for member in members),
            num_parameters=sum(p.numel() for p in parameters),
            parameter_bytes=sum(p.numel() * p.element_size() for p in parameters),
            copy_rank=self._copy_rank(stage),
        )

    def _copy_rank(self, stage: int) -> int | None:
        """The rank of a stage on the second chain, where it has another device."""
        own, *others = (ranks[stage] for ranks in self._layout.chains)
        return next((rank for rank in others if self.devices[rank] != self.devices[own]), None)
