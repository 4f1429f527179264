"""What types can't say: options that their builder refuses, and combinations that can't run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ppframe.config.costs import PROFILED, fitting, profile_faults, stage_faults
from ppframe.config.instantiate import (
    make_component,
    make_cost,
    make_options,
    make_schedule,
    make_target,
)
from ppframe.config.plain import MISSING
from ppframe.config.schema import (
    CheckpointConfig,
    Component,
    ModelConfig,
    PipelineConfig,
    Target,
)
from ppframe.config.targets import locate
from ppframe.engine.isolation import without_memory
from ppframe.errors import ConfigError, Fault, PPFrameError
from ppframe.schedule import schedule_facts
from ppframe.schedule.cost import Cost
from ppframe.training.optim import optimizer_from_class

# Microbatches times stages that a step may have: eight times 64 ranks of two chunks with 1024
# microbatches. A schedule of that size takes seconds to make and to prove.
_MAX_PASSES = 1 << 20
_CHEAP_KINDS = ("loss", "optimizer", "lr_schedule", "engine", "cost")
# What a generator calls its numbers, and where the configuration has them.
_GENERATOR_PATHS = {
    "": "schedule",
    "ranks": "pipeline.ranks",
    "chunks_per_rank": "pipeline.chunks_per_rank",
}


def refused_options(
    values: Mapping[str, Any], chunks: Mapping[str, Target], faults: Sequence[Fault]
) -> list[Fault]:
    """What the builders of parts refuse, tried where that costs nothing.

    Args:
        values: checked values by key of the configuration.
        chunks: what builds the model chunks, by dotted path.
        faults: those found so far; a part that has one is not tried. Datasets read files and chunks
            take time, so they are tried only where there are faults and nothing will run.
    """
    sinks = values["logger"] if isinstance(values["logger"], dict) else {}
    parts = {kind: values[kind] for kind in _CHEAP_KINDS}
    parts |= {f"logger.{name}": sink for name, sink in sinks.items()}
    refused = _refused_of(parts, faults)
    if faults or refused:
        refused += _refused_of({"data": values["data"]}, faults)
        refused += _refused_chunks(chunks, faults)
    return refused


def _refused_chunks(chunks: Mapping[str, Target], faults: Sequence[Fault]) -> list[Fault]:
    refused: list[Fault] = []
    with without_memory():
        for path, target in chunks.items():
            spoilt = any(_is_below(fault.path, path) for fault in faults)
            if spoilt or _is_incomplete(target):
                continue
            try:
                make_target(target, path)
            except ConfigError as error:
                refused += (replace(fault, path=fault.path or path) for fault in error.faults)
            except PPFrameError as error:
                refused.append(Fault(path, str(error)))
    return refused


def _refused_of(parts: Mapping[str, Any], faults: Sequence[Fault]) -> list[Fault]:
    return [
        fault
        for path, part in parts.items()
        if isinstance(part, Component) and not any(_is_below(f.path, path) for f in faults)
        for fault in _refused(path, part)
    ]


def _is_incomplete(value: Any) -> bool:
    """Whether a value that has a fault of its own stands among the arguments of a target."""
    if isinstance(value, Target):
        return _is_incomplete([*value.args, *value.kwargs.values()])
    if isinstance(value, list | tuple | dict):
        return any(map(_is_incomplete, value.values() if isinstance(value, dict) else value))
    return value is MISSING


def combination_faults(values: Mapping[str, Any], faults: Sequence[Fault]) -> list[Fault]:
    """Every broken rule between values.

    Args:
        values: checked values by key of the configuration; a rule whose values are not all there is
            left out.
        faults: those found so far; a schedule that has one is not tried.
    """
    spoilt = {"schedule"} if any(_is_below(f.path, "schedule") for f in faults) else set()
    values = {**values, "actual_cost": _usable(values["cost"])}
    return [
        fault
        for rule, keys in _RULES
        if spoilt.isdisjoint(keys) and not any(values[key] is MISSING for key in keys)
        for fault in rule(*(values[key] for key in keys))
    ]


def _is_below(path: str, part: str) -> bool:
    return path == part or path.startswith(f"{part}.")


def _refused(path: str, component: Component) -> Sequence[Fault]:
    kind = path.partition(".")[0]
    try:
        if kind == "optimizer" and component.target is not None:
            optimizer_from_class(locate(component.target), make_options(component, kind))
        elif kind == "cost":
            make_cost(component)
        else:
            make_component(kind, component)
    except ConfigError as error:
        return error.faults
    except PPFrameError as error:
        return (Fault(path, str(error)),)
    return ()


def _microbatch_fits_batch(pipeline: PipelineConfig) -> Iterator[Fault]:
    if pipeline.microbatch_size > pipeline.batch_size:
        yield Fault(
            "pipeline.microbatch_size",
            f"must be at most pipeline.batch_size ({pipeline.batch_size}), but is "
            f"{pipeline.microbatch_size}. Lower it, or raise the batch size.",
        )


def _usable(component: Any) -> Cost | None:
    """The cost; None where it can't be made, of which `refused_options` tells."""
    try:
        return make_cost(component) if isinstance(component, Component) else None
    except PPFrameError:
        return None


def _schedule_and_modules(
    component: Component, pipeline: PipelineConfig, model: ModelConfig, cost: Cost | None
) -> Iterator[Fault]:
    num_chunks = _known_chunks(component, pipeline) or 1
    refused = [
        *_modules_fill_stages(num_chunks, pipeline, model, at_least=True),
        *_few_enough_passes(num_chunks, pipeline),
    ]
    if refused:  # the schedule is not even made
        yield refused[0]
        return
    try:
        fit = fitting(cost, _num_stages(component, pipeline))
        schedule = make_schedule(component, pipeline, cost=fit)
    except ConfigError as error:
        yield from map(_as_configured, error.faults)
        return
    except PPFrameError as error:
        yield Fault("schedule", str(error))
        return
    if schedule.ranks != pipeline.ranks:
        yield Fault(
            "pipeline.ranks",
            f"must be {schedule.ranks}, as schedule `{component.label}` has it, but is "
            f"{pipeline.ranks}. Set pipeline.ranks={schedule.ranks}.",
        )
        return
    yield from _modules_fill_stages(schedule.chunks_per_rank, pipeline, model)


def _cost_and_schedule(
    component: Component, cost: Cost | None, schedule: Component, pipeline: PipelineConfig
) -> Iterator[Fault]:
    num_stages = _num_stages(schedule, pipeline)
    if cost is not None and num_stages is not None:
        yield from stage_faults(component, cost, num_stages)


def _profile_and_run(
    component: Component,
    cost: Cost | None,
    pipeline: PipelineConfig,
    model: ModelConfig,
    loss: Component,
) -> Iterator[Fault]:
    if cost is not None and component.name == PROFILED:
        yield from profile_faults(component, pipeline=pipeline, model=model, loss=loss)


def _num_stages(component: Component, pipeline: PipelineConfig) -> int | None:
    """How many stages a schedule has; None where it can't be made."""
    chunks = _known_chunks(component, pipeline)
    if chunks is None and not list(_few_enough_passes(1, pipeline)):
        try:
            chunks = make_schedule(component, pipeline).chunks_per_rank
        except PPFrameError:
            return None
    return None if chunks is None else pipeline.ranks * chunks


def _known_chunks(component: Component, pipeline: PipelineConfig) -> int | None:
    """Chunks per rank; None where only the schedule itself, once it is made, can tell."""
    if pipeline.chunks_per_rank is not None:
        return pipeline.chunks_per_rank
    facts = None if component.name is None else schedule_facts(component.name)
    return None if facts is None else facts.chunks_per_rank


def _few_enough_passes(chunks_per_rank: int, pipeline: PipelineConfig) -> Iterator[Fault]:
    """A step that no memory holds the schedule of is refused before it is made."""
    num_stages, num_microbatches = pipeline.ranks * chunks_per_rank, pipeline.num_microbatches
    if num_stages * num_microbatches > _MAX_PASSES:
        yield Fault(
            "pipeline.microbatch_size",
            f"must make at most {_MAX_PASSES} passes of a microbatch through a stage in a step, "
            f"but makes {num_stages * num_microbatches} (stages {num_stages}, microbatches "
            f"{num_microbatches}). Raise it, or lower pipeline.batch_size or the number of ranks.",
        )


def _as_configured(fault: Fault) -> Fault:
    """A generator's fault at the key that its number comes from."""
    if fault.path == "microbatches":
        counted = "divided by pipeline.microbatch_size is the number of microbatches, which"
        return Fault("pipeline.batch_size", f"{counted} {fault.message}")
    return replace(fault, path=_GENERATOR_PATHS.get(fault.path, fault.path))


def _modules_fill_stages(
    chunks_per_rank: int, pipeline: PipelineConfig, model: ModelConfig, *, at_least: bool = False
) -> Iterator[Fault]:
    """Every stage gets a module, and those that are counted out are all modules.

    Args:
        chunks_per_rank: of the schedule.
        pipeline: ranks and partition.
        model: its modules.
        at_least: the schedule may have more chunks; then the partition is not looked at.
    """
    num_stages, num_modules = pipeline.ranks * chunks_per_rank, model.num_modules
    if num_stages > num_modules:
        most = num_modules // chunks_per_rank
        few = f"at most {most} rank{'s' * (most > 1)}, fewer" if most else "far fewer"
        yield Fault(
            "pipeline.ranks",
            f"must make at most as many stages as the model has chunks, {num_modules}, but makes "
            f"{num_stages} (ranks {pipeline.ranks}, chunks per rank {chunks_per_rank}). Use {few} "
            "chunks per rank, or a deeper model.",
        )
    elif not at_least and not isinstance(pipeline.partition, str):
        counts = pipeline.partition
        if len(counts) != num_stages or sum(counts) != num_modules:
            yield Fault(
                "pipeline.partition",
                f"must be {num_stages} counts with sum {num_modules}, but is {list(counts)} with "
                f"sum {sum(counts)}. Give the number of chunks of each stage, or `even`.",
            )


def _evaluation_has_a_checkpoint(mode: str, checkpoint: CheckpointConfig) -> Iterator[Fault]:
    if mode == "eval" and checkpoint.path is None:
        yield Fault(
            "checkpoint.path",
            "must be given with mode=eval, but is null. Type `checkpoint=PATH`, such as "
            "RUN_DIR/checkpoints/final.pt.",
        )


def _checkpoint_exists(checkpoint: CheckpointConfig) -> Iterator[Fault]:
    if checkpoint.path is not None and not checkpoint.path.exists():
        yield Fault(
            "checkpoint.path",
            f"must be a file that is there, but is {checkpoint.path}. Correct it; "
            "`checkpoint=NAME` otherwise picks one of the files in conf/checkpoint.",
        )


_RULES: tuple[tuple[Callable[..., Iterator[Fault]], tuple[str, ...]], ...] = (
    (_microbatch_fits_batch, ("pipeline",)),
    (_schedule_and_modules, ("schedule", "pipeline", "model", "actual_cost")),
    (_cost_and_schedule, ("cost", "actual_cost", "schedule", "pipeline")),
    (_profile_and_run, ("cost", "actual_cost", "pipeline", "model", "loss")),
    (_evaluation_has_a_checkpoint, ("mode", "checkpoint")),
    (_checkpoint_exists, ("checkpoint",)),
)
