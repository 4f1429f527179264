"""What a run is configured by: the whole configuration as frozen dataclasses.

The fields of `RunConfig` are the keys of `conf/config.yaml`, their annotations are the rules that a
value must keep. The options of a part (a loss, a schedule, a dataset) don't stand here: they are
the keyword parameters of its builder, wherever that is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, final

from pydantic import Field

PositiveInt = Annotated[int, Field(ge=1)]
NonNegativeInt = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """Marks a field as a part that the registry builds.

    Args:
        name: the registry's kind, which is also the key and the config group.
        given: parameters of the builder that the run gives and the config may not.
    """

    name: str
    given: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something importable and what to call it with: `{_target_: path, …kwargs}`.

    Args:
        path: import path of a class or function.
        args: positional arguments, written `_args_`.
        kwargs: keyword arguments; plain data, or further targets.
    """

    path: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part of the run: a registered name, or an import path, with its options.

    Args:
        name: the registered name, or None where `target` is given.
        target: import path, or None where `name` is given.
        options: keyword arguments of the builder; plain data, or targets.
    """

    name: str | None
    target: str | None
    options: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The name or the import path."""
        return self.name or self.target or ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSpec:
    """One entry of `model.chunks`.

    Args:
        target: class to build.
        repeat: how many modules in a row are made of it.
    """

    target: Target
    repeat: int = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The model as a list of chunks in forward order."""

    chunks: tuple[ChunkSpec, ...]

    @property
    def num_modules(self) -> int:
        """Modules that the chunks make, repeats counted."""
        return sum(chunk.repeat for chunk in self.chunks)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """How the model is cut and the batch is split.

    Args:
        ranks: pipeline ranks (P).
        chunks_per_rank: stages that each rank owns (V); None is the schedule's own number.
        partition: how modules are shared out over the stages: `even`, `parameters`, or counts.
        recompute: `none`, or `full`: stages run their forward again instead of keeping activations.
        batch_size: samples of one step.
        microbatch_size: samples of one microbatch.
    """

    ranks: PositiveInt
    chunks_per_rank: PositiveInt | None
    partition: Literal["even", "parameters"] | tuple[PositiveInt, ...]
    recompute: Literal["none", "full"]
    batch_size: PositiveInt
    microbatch_size: PositiveInt

    @property
    def num_microbatches(self) -> int:
        """Microbatches of one step (M); the last one may be smaller."""
        return -(-self.batch_size // self.microbatch_size)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """When and how much is evaluated.

    Args:
        every_steps: steps between two evaluations; None evaluates at the end only.
        num_batches: validation batches of one evaluation; 0 evaluates never.
        sample_tokens: tokens that a language model writes at the end; 0 writes none.
    """

    every_steps: PositiveInt | None
    num_batches: NonNegativeInt
    sample_tokens: NonNegativeInt


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileConfig:
    """How often `mode=profile` measures.

    Args:
        warm_up: passes of a microbatch through all stages that are not counted.
        repeats: passes that are counted; a time is the median over them.
    """

    warm_up: NonNegativeInt
    repeats: PositiveInt


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """What is saved and what is loaded.

    Args:
        final: save the parameters and buffers when the run ends.
        path: checkpoint to read at the start; None starts fresh.
    """

    final: bool
    path: Path | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Where a run was started and where it writes; no part of what users configure.

    Args:
        folder: the launch folder, which relative paths are relative to.
        run_dir: folder that the run writes into.
        overrides: the command line's overrides of this run.
        sweep_dir: folder of the sweep that the run is a job of, or None.
        job: number of the job in its sweep, or None.
    """

    folder: Path
    run_dir: Path
    overrides: tuple[str, ...] = ()
    sweep_dir: Path | None = None
    job: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """A whole configuration, checked.

    Args:
        mode: what to do with it.
        seed: starts every stream of random numbers of the run.
        steps: optimizer updates.
        plugins: modules that are imported because they register more names.
        trace: record every action of every step.
        clip_grad_norm: limit of the global gradient norm; None is no limit.
        measure_every: actions are timed in each n-th step; None never times them.
        model: chunks of the model.
        data: dataset.
        loss: loss function.
        optimizer: optimizer of each rank.
        lr_schedule: multiplier of the learning rate by step.
        schedule: pipeline schedule.
        cost: what the actions cost in time and memory, for predictions and for schedules that are
            made for it.
        engine: how the ranks come to exist.
        pipeline: how the model is cut and the batch is split.
        evaluation: when and how much is evaluated.
        profile: how often `mode=profile` measures.
        logger: the sinks that metrics go to, by name.
        checkpoint: what is saved and loaded.
        launch: where the run was started and where it writes.
        resolved: the composed configuration as nested plain data, paths made absolute.
    """

    mode: Literal["train", "plan", "check", "eval", "profile"]
    seed: Seed
    steps: PositiveInt
    plugins: tuple[str, ...]
    trace: bool
    clip_grad_norm: PositiveFloat | None
    measure_every: PositiveInt | None
    model: ModelConfig
    data: Annotated[Component, Kind("data")]
    loss: Annotated[Component, Kind("loss")]
    optimizer: Annotated[Component, Kind("optimizer", given=("params",))]
    lr_schedule: Annotated[Component, Kind("lr_schedule")]
    schedule: Annotated[
        Component, Kind("schedule", given=("ranks", "microbatches", "chunks_per_rank", "cost"))
    ]
    cost: Annotated[Component, Kind("cost")]
    engine: Annotated[Component, Kind("engine")]
    pipeline: PipelineConfig
    evaluation: EvaluationConfig
    profile: ProfileConfig
    logger: Annotated[Mapping[str, Component], Kind("logger")]
    checkpoint: CheckpointConfig
    launch: Launch
    resolved: Mapping[str, Any]
