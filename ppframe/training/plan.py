"""What is known about a training before its first step, as plain data."""

from __future__ import annotations

from ppframe.data.base import Dataset
from ppframe.metrics import Plan, StagePlan
from ppframe.runtime import Pipeline
from ppframe.schedule.cost import UNIT_COST, Cost
from ppframe.simulator import SimulationReport, simulate


def plan_of(
    pipeline: Pipeline,
    *,
    num_microbatches: int,
    batch_size: int,
    dataset: Dataset | None = None,
    cost: Cost = UNIT_COST,
) -> Plan:
    """The plan of a pipeline.

    Args:
        pipeline: what will run.
        num_microbatches: microbatches of a training batch.
        batch_size: samples of a training batch.
        dataset: what it is trained on.
        cost: what times, bubbles and bytes are predicted with.
    """
    schedule = pipeline.schedule(num_microbatches)
    report = predict(pipeline, num_microbatches, cost)
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
        makespan=report.makespan,
        time_unit=cost.time_unit,
        bubble_fraction=report.bubble_fraction,
        span_bubble=report.span_bubble,
        peak_in_flight=report.peak_in_flight,
        state_bytes=tuple(
            2 * sum(i.parameter_bytes for i in stages if rank in (i.rank, i.copy_rank))
            for rank in range(pipeline.ranks)
        ),
        peak_bytes=report.peak_bytes if cost.has_bytes else (),
        timeline=tuple(report.timeline),
        data="" if dataset is None else dataset.describe(),
        unigram_entropy=None if dataset is None else dataset.unigram_entropy,
    )


def predict(pipeline: Pipeline, num_microbatches: int, cost: Cost = UNIT_COST) -> SimulationReport:
    """The simulated step, in the unit of the cost."""
    return simulate(pipeline.schedule(num_microbatches), cost)
