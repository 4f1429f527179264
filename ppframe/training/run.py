"""A whole training or evaluation, with all that it leaves in the run directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from ppframe.data.base import Dataset
from ppframe.metrics import Plan
from ppframe.runtime import Pipeline
from ppframe.schedule.cost import UNIT_COST, Cost
from ppframe.stage.batch_loss import LossFunction
from ppframe.training.checkpoint import FINAL, save_model
from ppframe.training.drawings import PlannedStep, RanStep, draw_plan, draw_ran
from ppframe.training.evaluate import evaluate
from ppframe.training.measure import bubble_source, measured_timeline
from ppframe.training.plan import plan_of, predict
from ppframe.training.provenance import write_git_state
from ppframe.training.recorder import RunRecorder
from ppframe.training.sample import SampleSettings, write_sample
from ppframe.training.trainer import Trainer


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """What a training leaves behind beside its numbers.

    Args:
        launch_dir: folder whose git state is noted.
        save_final: save the model at the end, and when a signal ends the run.
        sample: how a language model's text is written at the end.
        cost: what the plan is predicted with.
    """

    launch_dir: Path
    save_final: bool = True
    cost: Cost = UNIT_COST
    sample: SampleSettings = field(default_factory=SampleSettings)


def train(trainer: Trainer, recorder: RunRecorder, options: TrainOptions) -> None:
    """Train to the end.

    Args:
        trainer: does the steps.
        recorder: entered by the caller.
        options: what is left behind.
    """
    run_dir = recorder.run.run_dir
    plan, planned = _planned(trainer, options.cost)
    if recorder.leads:
        _write_plan(trainer, run_dir, planned)
        write_git_state(run_dir, options.launch_dir)
    recorder.start(plan, lambda: _facts(trainer, plan))
    try:
        trainer.run(recorder.sink)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            with trainer.hold():
                _save(trainer, run_dir, options)
        try:
            _draw_ran(trainer, planned, recorder)
        except Exception as drawing:
            error.add_note(f"Drawing the last steps then failed as well: {drawing!r}")
        raise
    with trainer.hold():
        _save(trainer, run_dir, options)
    _draw_ran(trainer, planned, recorder)
    sample = write_sample(trainer.pipeline, trainer.dataset, options.sample)
    if sample is not None:
        recorder.sink.text("prompt", sample.prompt)
        recorder.sink.text("sample", sample.continuation)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """What is evaluated.

    Args:
        batch_size: samples of a batch.
        num_batches: validation batches.
        launch_dir: folder whose git state is noted; None notes none.
    """

    batch_size: int
    num_batches: int
    launch_dir: Path | None = None


def evaluate_model(
    pipeline: Pipeline,
    dataset: Dataset,
    recorder: RunRecorder,
    *,
    loss: LossFunction,
    settings: EvaluationSettings,
) -> float:
    """Evaluate the model as it is.

    The loss goes to the sinks as `val/loss` of step 0, and to the summary as `best_val_loss`.

    Args:
        pipeline: the model.
        dataset: gives the validation batches.
        recorder: entered by the caller.
        loss: the pipeline's own loss.
        settings: what is evaluated.
    """
    facts: dict[str, Any] = {}
    if settings.launch_dir is not None:
        write_git_state(recorder.run.run_dir, settings.launch_dir)
    recorder.start(None, lambda: facts)
    batches = dataset.validation_batches(settings.batch_size, settings.num_batches)
    value = evaluate(pipeline, batches, loss=loss)
    facts["best_val_loss"] = value
    recorder.sink.log({"val/loss": value}, 0)
    return value


def _write_plan(trainer: Trainer, run_dir: Path, planned: PlannedStep) -> None:
    """What will be executed, in `schedule.csv` and `lowered.csv`, and drawn."""
    planned.schedule.to_csv(run_dir / "schedule.csv")
    lowered = trainer.pipeline.lowered(trainer.settings.num_microbatches)
    lowered.to_csv(run_dir / "lowered.csv")
    draw_plan(run_dir, planned)


def _planned(trainer: Trainer, cost: Cost) -> tuple[Plan, PlannedStep]:
    """What is known before the first step."""
    settings, pipeline = trainer.settings, trainer.pipeline
    schedule = pipeline.schedule(settings.num_microbatches)
    planned = PlannedStep(schedule, predict(pipeline, settings.num_microbatches, cost), cost)
    plan = plan_of(
        pipeline,
        num_microbatches=settings.num_microbatches,
        batch_size=settings.batch_size,
        dataset=trainer.dataset,
        cost=cost,
    )
    return plan, planned


def _draw_ran(trainer: Trainer, planned: PlannedStep, recorder: RunRecorder) -> None:
    """Draw the last step that was timed, if any was."""
    if trainer.progress.recorded is None:
        return
    step, recorded = trainer.progress.recorded
    source = bubble_source(trainer.pipeline)
    timeline = measured_timeline(planned.schedule, recorded, source)
    ran = RanStep(step, timeline, source)
    page = draw_ran(recorder.run.run_dir, planned, ran, trainer.progress.traces)
    recorder.sink.page("timeline", page)


def _facts(trainer: Trainer, plan: Plan) -> dict[str, Any]:
    progress = trainer.progress
    bubble = progress.bubble()
    return {
        "steps": progress.steps,
        "final_loss": progress.final_loss,
        "best_val_loss": progress.best_val_loss,
        "first_nonfinite_step": progress.first_nonfinite_step,
        "bubble_fraction_predicted": plan.bubble_fraction,
        "bubble_fraction_measured": None if bubble is None else bubble.fraction,
        "bubble_source": None if bubble is None else bubble.source,
    }


def _save(trainer: Trainer, run_dir: Path, options: TrainOptions) -> None:
    if options.save_final:
        save_model(trainer.pipeline, run_dir / FINAL)
