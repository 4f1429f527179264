"""What is known about a training before its first step, as plain data."""

from __future__ import annotations

from ppframe.data.base import Dataset
from ppframe.metrics import Plan, StagePlan
from ppframe.runtime import Pipeline
from ppframe.simulator import Cost, SimulationReport, simulate


def plan_of(
    pipeline: Pipeline, *, num_microbatches: int, batch_size: int, dataset: Dataset | None = None
) -> Plan:
    """The plan of a pipeline.

    The bubble is predicted for stages of equal cost, a backward twice as long as a forward, and
    transfers that take no time.

    Args:
        pipeline: what will run.
        num_microbatches: microbatches of a training batch.
        batch_size: samples of a training batch.
        dataset: what it is trained on.
    """
    schedule = pipeline.schedule(num_microbatches)
    report = predict(pipeline, num_microbatches)
    stages = pipeline.stages
    return Plan(
        schedule=schedule.name or "schedule without a name",
        num_microbatches=num_microbatches,
        batch_size=batch_size,
        stages=tuple(
            StagePlan(info.index, info.rank, info.module_names, info.num_parameters)
            for info in stages
        ),
        devices=tuple(str(device) for device in pipeline.devices),
        bubble_fraction=report.bubble_fraction,
        peak_in_flight=report.peak_in_flight,
        state_bytes=tuple(
            2 * sum(info.parameter_bytes for info in stages if info.rank == rank)
            for rank in range(pipeline.ranks)
        ),
        timeline=tuple(report.timeline),
        data="" if dataset is None else dataset.describe(),
        unigram_entropy=None if dataset is None else dataset.unigram_entropy,
    )


def predict(pipeline: Pipeline, num_microbatches: int) -> SimulationReport:
    """The simulated step, in units of a forward."""
    cost = Cost(forward=1, backward_input=1, backward_weight=1)
    return simulate(pipeline.schedule(num_microbatches), cost)
