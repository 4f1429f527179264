"""What each mode does with a checked configuration."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from ppframe.build import (
    Parts,
    build_cost,
    build_engine,
    build_parts,
    build_pipeline,
    build_recorder,
    build_trainer,
    misfits,
)
from ppframe.cli.plan import PlanFigures, print_plan
from ppframe.cli.profile import cost_text, keep_profile, warn_of_other_machine
from ppframe.config import RunConfig
from ppframe.config.plain import to_yaml
from ppframe.config.plugins import import_parts, import_plugins
from ppframe.engine import Engine, Ranks
from ppframe.errors import ConfigError
from ppframe.runtime import Pipeline
from ppframe.training.checkpoint import load_model
from ppframe.training.drawings import PlannedStep, draw_plan, trace_plan
from ppframe.training.files import write_text
from ppframe.training.plan import plan_of, predict
from ppframe.training.profile import (
    ProfileSettings,
    machine_of,
    microbatch_shapes,
    profile_stages,
)
from ppframe.training.recorder import RunRecorder
from ppframe.training.run import EvaluationSettings, TrainOptions, evaluate_model, train
from ppframe.training.sample import SampleSettings
from ppframe.training.volume import volume_of
from ppframe.training.waiting import waiting_of

Figures = Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class _Mode:
    """What a mode needs.

    Args:
        work: does it.
        device: where the modules' parameters are made.
        has_sinks: whether its numbers go to the user's sinks.
        runs_apart: whether ranks may be processes.
        must_fit: whether data, chunks and loss must fit each other.
    """

    work: Callable[[RunConfig, Parts, RunRecorder, Ranks], Figures]
    device: str
    has_sinks: bool
    runs_apart: bool = False
    must_fit: bool = True


def run(config: RunConfig) -> dict[str, Any]:
    """Do what `mode` says; `config.yaml` in the run's folder keeps the configuration.

    Args:
        config: the run.

    Returns:
        what `summary.json` says, and further figures of the mode.
    """
    text = to_yaml(config.resolved)
    write_text(config.launch.run_dir / "config.yaml", text)
    engine = _engine(config)
    if not _MODES[config.mode].runs_apart:
        engine = engine.together()
    return engine.run(
        partial(_work, config),
        num_ranks=config.pipeline.ranks,
        seed=config.seed,
        log_dir=config.launch.run_dir / "logs",
        settings=config.resolved,
    )


def _work(config: RunConfig, ranks: Ranks) -> dict[str, Any]:
    """What the mode does with the ranks, in this process or in one that an engine started."""
    import_parts()
    import_plugins(config.plugins, config.launch.folder)
    mode = _MODES[config.mode]
    parts = build_parts(config, mode.device)
    faults = misfits(config, parts) if mode.must_fit else []
    if faults:
        raise ConfigError(faults)
    recorder = build_recorder(config, parts.sinks if mode.has_sinks else (), ranks)
    with recorder:
        figures = mode.work(config, parts, recorder, ranks)
    return {**recorder.summary.as_dict(), **figures}


def _engine(config: RunConfig) -> Engine:
    """The engine; what it refuses is told together with what the parts refuse."""
    try:
        return build_engine(config)
    except ConfigError as error:
        faults = list(error.faults)
    try:
        build_parts(config, "meta")
    except ConfigError as error:
        faults += error.faults
    raise ConfigError(faults)


def _train(config: RunConfig, parts: Parts, recorder: RunRecorder, ranks: Ranks) -> Figures:
    with build_pipeline(config, parts, ranks.devices, ranks.member) as pipeline:
        _load(config, pipeline)
        trainer = build_trainer(config, parts, pipeline, ranks)
        options = TrainOptions(
            launch_dir=config.launch.folder,
            save_final=config.checkpoint.final,
            sample=SampleSettings(num_tokens=config.evaluation.sample_tokens),
            cost=build_cost(config),
        )
        warn_of_other_machine(config, ranks.devices)
        train(trainer, recorder, options)
    return {}


def _eval(config: RunConfig, parts: Parts, recorder: RunRecorder, ranks: Ranks) -> Figures:
    with build_pipeline(config, parts, ranks.devices, ranks.member) as pipeline:
        _load(config, pipeline)
        settings = EvaluationSettings(
            batch_size=config.pipeline.batch_size, num_batches=config.evaluation.num_batches
        )
        evaluate_model(pipeline, parts.dataset, recorder, loss=parts.loss, settings=settings)
    return {}


def _plan(config: RunConfig, parts: Parts, recorder: RunRecorder, ranks: Ranks) -> Figures:
    """Everything up to the first step, on modules without memory."""
    num_microbatches, cost = config.pipeline.num_microbatches, build_cost(config)
    with build_pipeline(config, parts) as pipeline:
        plan = plan_of(
            pipeline,
            num_microbatches=num_microbatches,
            batch_size=config.pipeline.batch_size,
            dataset=parts.dataset,
            cost=cost,
        )
        plan = replace(plan, devices=tuple(str(device) for device in ranks.devices))
        report = predict(pipeline, num_microbatches, cost)
        schedule, lowered = pipeline.schedule(num_microbatches), pipeline.lowered(num_microbatches)
        counts = [len(stage.module_names) for stage in pipeline.stages]
    batch = next(iter(parts.dataset.validation_batches(config.pipeline.microbatch_size, 1)), None)
    inputs = None if batch is None else batch.inputs
    volume = volume_of(lowered, parts.modules, counts, inputs)
    waiting = waiting_of(parts.modules, counts, inputs)
    run_dir = config.launch.run_dir
    schedule.to_csv(run_dir / "schedule.csv")
    lowered.to_csv(run_dir / "lowered.csv")
    planned = PlannedStep(schedule, report, cost)
    draw_plan(run_dir, planned)
    trace_plan(run_dir, planned)
    recorder.start(plan, lambda: {"bubble_fraction_predicted": report.bubble_fraction})
    figures = PlanFigures(
        plan, planned, lowered, volume, waiting, cost=cost_text(config), run_dir=run_dir
    )
    warn_of_other_machine(config, ranks.devices)
    print_plan(figures)
    return figures.kept()


def _check(config: RunConfig, parts: Parts, _recorder: RunRecorder, ranks: Ranks) -> Figures:
    """Every part built and fitted to the next, on modules without memory; nothing runs."""
    with build_pipeline(config, parts) as pipeline:
        pipeline.lowered(config.pipeline.num_microbatches)
        _load(config, pipeline)
        build_trainer(config, parts, pipeline, ranks)
        num_stages = pipeline.num_stages
    sys.stdout.write(
        f"The configuration is sound: {config.model.num_modules} model chunks in {num_stages} "
        f"stages on {config.pipeline.ranks} ranks, schedule {config.schedule.label}, "
        f"{config.pipeline.num_microbatches} microbatches, {config.steps} steps.\n"
    )
    return {}


def _profile(config: RunConfig, parts: Parts, recorder: RunRecorder, ranks: Ranks) -> Figures:
    """Measure the stages on real data; nothing is trained."""
    settings = ProfileSettings(
        microbatch_size=config.pipeline.microbatch_size,
        seed=config.seed,
        warm_up=config.profile.warm_up,
        repeats=config.profile.repeats,
    )
    recorder.start(None, dict)
    with build_pipeline(config, parts, ranks.devices) as pipeline:
        _load(config, pipeline)
        batch = next(parts.dataset.train_batches(config.pipeline.batch_size, config.seed))
        stages = profile_stages(
            pipeline,
            parts.modules,
            batch,
            loss=parts.loss,
            make_optimizer=parts.make_optimizer,
            settings=settings,
        )
    shapes = microbatch_shapes(batch.inputs, settings.microbatch_size)
    return {"profile": str(keep_profile(config, stages, machine_of(ranks.devices), shapes))}


def _load(config: RunConfig, pipeline: Pipeline) -> None:
    if config.checkpoint.path is not None:
        load_model(pipeline, config.checkpoint.path)


_MODES: Mapping[str, _Mode] = {
    "train": _Mode(_train, device="cpu", has_sinks=True, runs_apart=True),
    "eval": _Mode(_eval, device="cpu", has_sinks=True, runs_apart=True),
    "plan": _Mode(_plan, device="meta", has_sinks=False, must_fit=False),
    "profile": _Mode(_profile, device="cpu", has_sinks=False),
    "check": _Mode(_check, device="meta", has_sinks=False),
}
