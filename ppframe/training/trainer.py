"""Trainer: batches in, updates and numbers out."""

from __future__ import annotations

import logging
import math
import statistics
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import final

from ppframe.data.base import Batch, Dataset
from ppframe.metrics import Sink
from ppframe.runtime import ActionTime, Pipeline, StepResult
from ppframe.stage.batch_loss import LossFunction
from ppframe.stage.microbatch import batch_size_of
from ppframe.training.evaluate import evaluate
from ppframe.training.interrupt import Hold
from ppframe.training.measure import (
    Bubble,
    bubble_source,
    measure_bubble,
    memory_by_rank,
    reset_peak_memory,
)
from ppframe.training.update import Update

_log = logging.getLogger(__name__)

MAX_TRACED_STEPS = 50


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSettings:
    """How long and on what a trainer works.

    Args:
        num_steps: optimizer updates.
        batch_size: samples of a batch.
        num_microbatches: microbatches that such a batch is cut into.
        seed: seed of the training data's order.
        eval_every_steps: updates between two evaluations; None evaluates after the last one only.
        eval_num_batches: validation batches of an evaluation; 0 never evaluates.
        measure_every: actions are timed in each n-th step, in the first and in the last one; None
            never times them.
        trace: keep when each action ran, of the first `MAX_TRACED_STEPS` steps.
    """

    num_steps: int
    batch_size: int
    num_microbatches: int
    seed: int = 0
    eval_every_steps: int | None = None
    eval_num_batches: int = 8
    measure_every: int | None = 10
    trace: bool = False


@final
@dataclass(slots=True)
class Progress:
    """How far a training has come.

    Args:
        steps: updates done.
        final_loss: loss of the last step's batch, before its update.
        best_val_loss: lowest finite loss of all evaluations.
        first_nonfinite_step: first step whose loss or gradients were not finite.
        bubbles: measured idle shares by step.
        traces: when each action ran, by step, where that is kept.
        recorded: the last step with the configured microbatches whose actions were timed, and when
            each of them ran.
    """

    steps: int = 0
    final_loss: float | None = None
    best_val_loss: float | None = None
    first_nonfinite_step: int | None = None
    bubbles: dict[int, Bubble] = field(default_factory=dict)
    traces: dict[int, tuple[ActionTime, ...]] = field(default_factory=dict)
    recorded: tuple[int, tuple[ActionTime, ...]] | None = None

    def bubble(self) -> Bubble | None:
        """Median of the measured idle shares; the first step, which is cold, only if alone."""
        warm = [bubble for step, bubble in self.bubbles.items() if step > 1]
        chosen = warm or list(self.bubbles.values())
        if not chosen:
            return None
        return Bubble(statistics.median(bubble.fraction for bubble in chosen), chosen[0].source)


@final
class Trainer:
    """Trains a pipeline step by step.

    Args:
        pipeline: the model; its parameters are updated in place.
        dataset: training and validation batches.
        update: the optimizers.
        loss: the pipeline's own loss.
        settings: how long and on what.
        hold: keeps signals back during an update, so that none is torn in two.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        dataset: Dataset,
        *,
        update: Update,
        loss: LossFunction,
        settings: TrainerSettings,
        hold: Hold = nullcontext,
    ) -> None:
        self.pipeline = pipeline
        self.dataset = dataset
        self.settings = settings
        self.hold = hold
        self.progress = Progress()
        self._update = update
        self._loss = loss
        self._row: dict[str, float] = {}
        self._bubble: dict[str, float] = {}
        self._peaks: dict[str, float] = {}

    def run(self, sink: Sink) -> None:
        """Do all steps and evaluations; each step's numbers go to the sink in one row.

        Whatever ends it, the row of the last update is logged.
        """
        settings, progress = self.settings, self.progress
        reset_peak_memory(self.pipeline.devices)
        batches = self.dataset.train_batches(
            settings.batch_size, settings.seed, start_step=progress.steps
        )
        try:
            while progress.steps < settings.num_steps:
                started_s = time.perf_counter()
                self.step(next(batches), started_s=started_s)
                if self._evaluation_is_due():
                    self._row["val/loss"] = self.evaluate()
                self._flush(sink)
        finally:
            self._flush(sink)

    def step(self, batch: Batch, *, started_s: float | None = None) -> dict[str, float]:
        """One update.

        Args:
            batch: samples on the CPU or where the pipeline wants them.
            started_s: `time.perf_counter()` when work on the step began; None means now.

        Returns:
            the numbers of the step, by key.

        Raises:
            StageError: a stage failed; nothing was updated.
        """
        started_s = time.perf_counter() if started_s is None else started_s
        step = self.progress.steps + 1
        self.pipeline.record = self._is_measured(step) or self._is_traced(step)
        result = self.pipeline.step(batch.inputs, batch.targets)
        with self.hold():
            lr, grad_norm = self._update.apply(step - 1, self.settings.num_steps)
            loss = float(result.loss)
            elapsed_s = time.perf_counter() - started_s
            self.progress.steps, self.progress.final_loss = step, loss
            self._keep(step, result)
            self._row = {
                "train/loss": loss,
                "train/lr": lr,
                "train/grad_norm": grad_norm,
                **self._speed(batch, elapsed_s),
                **self._bubble,
                **self._memory(step),
            }
            self._report_nonfinite(step, self._row)
        return dict(self._row)

    def evaluate(self) -> float:
        """Loss over the validation batches."""
        settings = self.settings
        batches = self.dataset.validation_batches(settings.batch_size, settings.eval_num_batches)
        value = evaluate(self.pipeline, batches, loss=self._loss)
        best = self.progress.best_val_loss
        if math.isfinite(value) and (best is None or value < best):
            self.progress.best_val_loss = value
        return value

    def _evaluation_is_due(self) -> bool:
        step, settings = self.progress.steps, self.settings
        if not settings.eval_num_batches:
            return False
        every = settings.eval_every_steps
        return step == settings.num_steps or (every is not None and step % every == 0)

    def _is_measured(self, step: int) -> bool:
        every = self.settings.measure_every
        return every is not None and (step % every == 0 or step in (1, self.settings.num_steps))

    def _is_traced(self, step: int) -> bool:
        return self.settings.trace and step <= MAX_TRACED_STEPS

    def _keep(self, step: int, result: StepResult) -> None:
        """Take from a recorded step what was asked for."""
        if result.timeline is None:
            return
        if len(result.microbatch_losses) == self.settings.num_microbatches:
            self.progress.recorded = step, result.timeline
        if self._is_traced(step):
            self.progress.traces[step] = result.timeline
        if self._is_measured(step):
            schedule = self.pipeline.schedule(len(result.microbatch_losses))
            source = bubble_source(self.pipeline)
            bubble = measure_bubble(schedule, result.timeline, source)
            self.progress.bubbles[step] = bubble
            self._bubble = {"pipeline/bubble_fraction": bubble.fraction}

    def _memory(self, step: int) -> dict[str, float]:
        """Peaks of memory; processes ask each other only in steps that are measured."""
        if self.pipeline.peers.size == 1 or self._is_measured(step) or not self._peaks:
            self._peaks = memory_by_rank(self.pipeline)
        return self._peaks

    def _speed(self, batch: Batch, elapsed_s: float) -> dict[str, float]:
        num_samples = batch_size_of(batch.inputs)
        return {
            "time/step_s": elapsed_s,
            "throughput/samples_per_s": num_samples / elapsed_s,
            "throughput/tokens_per_s": num_samples * self.dataset.tokens_per_sample / elapsed_s,
        }

    def _report_nonfinite(self, step: int, row: dict[str, float]) -> None:
        """Say once, where it begins, that a loss or a norm is NaN or infinite."""
        loss, grad_norm = row["train/loss"], row["train/grad_norm"]
        if self.progress.first_nonfinite_step is not None:
            return
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            self.progress.first_nonfinite_step = step
            _log.error(
                "train/loss and train/grad_norm must be finite, but are %s and %s at step %d "
                "(lr %.3g). Lower optimizer.lr, warm up for longer, or set clip_grad_norm.",
                loss,
                grad_norm,
                step,
                row["train/lr"],
            )

    def _flush(self, sink: Sink) -> None:
        """Log the row once, to all sinks or to none."""
        if self._row:
            with self.hold():
                row, self._row = self._row, {}
                sink.log(row, self.progress.steps)
