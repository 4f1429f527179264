"""What each mode does with a checked configuration."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ppframe.build import (
    build_engine,
    build_modules,
    build_parts,
    build_pipeline,
    build_recorder,
    build_sinks,
    build_trainer,
)
from ppframe.cli.plan import PlanFigures, print_plan
from ppframe.config import RunConfig
from ppframe.config.plain import to_yaml
from ppframe.engine import Ranks
from ppframe.runtime import Pipeline
from ppframe.training.checkpoint import load_model
from ppframe.training.plan import plan_of, predict
from ppframe.training.recorder import RunRecorder
from ppframe.training.run import EvaluationSettings, TrainOptions, evaluate_model, train
from ppframe.training.sample import SampleSettings

Figures = Mapping[str, Any]
_Work = Callable[[RunConfig, RunRecorder, Ranks], Figures]


def run(config: RunConfig) -> dict[str, Any]:
    """Do what `mode` says; `config.yaml` in the run's folder keeps the configuration.

    Args:
        config: the run.

    Returns:
        what `summary.json` says, and further figures of the mode.
    """
    text = to_yaml(config.resolved)
    (config.launch.run_dir / "config.yaml").write_text(text, encoding="utf-8")
    work, has_sinks = _MODES[config.mode]

    def recorded(ranks: Ranks) -> dict[str, Any]:
        sinks = build_sinks(config) if has_sinks else []
        recorder = build_recorder(config, sinks, ranks)
        with recorder:
            figures = work(config, recorder, ranks)
        return {**recorder.summary.as_dict(), **figures}

    engine = build_engine(config)
    return engine.run(recorded, num_ranks=config.pipeline.ranks, seed=config.seed)


def _train(config: RunConfig, recorder: RunRecorder, ranks: Ranks) -> Figures:
    parts = build_parts(config)
    with build_pipeline(config, build_modules(config), parts.loss, ranks.devices) as pipeline:
        _load(config, pipeline)
        trainer = build_trainer(config, parts, pipeline, ranks)
        options = TrainOptions(
            launch_dir=config.launch.folder,
            save_final=config.checkpoint.final,
            sample=SampleSettings(num_tokens=config.evaluation.sample_tokens),
        )
        train(trainer, recorder, options)
    return {}


def _eval(config: RunConfig, recorder: RunRecorder, ranks: Ranks) -> Figures:
    parts = build_parts(config)
    with build_pipeline(config, build_modules(config), parts.loss, ranks.devices) as pipeline:
        _load(config, pipeline)
        settings = EvaluationSettings(
            batch_size=config.pipeline.batch_size, num_batches=config.evaluation.num_batches
        )
        evaluate_model(pipeline, parts.dataset, recorder, loss=parts.loss, settings=settings)
    return {}


def _plan(config: RunConfig, recorder: RunRecorder, ranks: Ranks) -> Figures:
    """Everything up to the first step, on modules without memory."""
    parts = build_parts(config)
    num_microbatches = config.pipeline.num_microbatches
    with build_pipeline(config, build_modules(config, "meta"), parts.loss) as pipeline:
        plan = plan_of(
            pipeline,
            num_microbatches=num_microbatches,
            batch_size=config.pipeline.batch_size,
            dataset=parts.dataset,
        )
        plan = replace(plan, devices=tuple(str(device) for device in ranks.devices))
        report = predict(pipeline, num_microbatches)
        schedule, lowered = pipeline.schedule(num_microbatches), pipeline.lowered(num_microbatches)
    run_dir = config.launch.run_dir
    schedule.to_csv(run_dir / "schedule.csv")
    lowered.to_csv(run_dir / "lowered.csv")
    recorder.start(plan, lambda: {"bubble_fraction_predicted": report.bubble_fraction})
    figures = PlanFigures(plan, report, schedule, lowered)
    print_plan(figures)
    return {"makespan": report.makespan, "peak_in_flight": max(report.peak_in_flight)}


def _check(config: RunConfig, _recorder: RunRecorder, ranks: Ranks) -> Figures:
    """Every part built once, on modules without memory; nothing runs."""
    build_sinks(config)
    parts = build_parts(config)
    with build_pipeline(config, build_modules(config, "meta"), parts.loss) as pipeline:
        pipeline.lowered(config.pipeline.num_microbatches)
        build_trainer(config, parts, pipeline, ranks)
        num_stages = pipeline.num_stages
    sys.stdout.write(
        f"The configuration is sound: {config.model.num_modules} model chunks in {num_stages} "
        f"stages on {config.pipeline.ranks} ranks, schedule {config.schedule.label}, "
        f"{config.pipeline.num_microbatches} microbatches, {config.steps} steps.\n"
    )
    return {}


def _load(config: RunConfig, pipeline: Pipeline) -> None:
    if config.checkpoint.path is not None:
        load_model(pipeline, config.checkpoint.path)


_MODES: Mapping[str, tuple[_Work, bool]] = {
    "train": (_train, True),
    "eval": (_eval, True),
    "plan": (_plan, False),
    "check": (_check, False),
}
