"""The costs that a run can choose, and what keeps one from fitting the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ppframe.config.profiles import PATH as _PATH
from ppframe.config.profiles import MadeFor, made_for, read_profile
from ppframe.config.schema import Component, ModelConfig, PipelineConfig
from ppframe.errors import Fault
from ppframe.registry import register
from ppframe.schedule.cost import UNIT_COST, Cost, PerStage

PROFILED = "profiled"
_AGAIN = "Measure again with mode=profile"
_REMEDIES = {
    "loss": "choose that loss",
    "partition": "set pipeline.partition to it",
    "ranks": "set pipeline.ranks to it",
    "microbatch_size": "set pipeline.microbatch_size to it",
    "recompute": "set pipeline.recompute to it",
}


@register("cost", "unit")
def unit() -> Cost:
    """Every stage alike: F, B and W take 1 each, a hop nothing; nothing is said of bytes."""
    return UNIT_COST


@register("cost", "per-stage")
def per_stage(  # noqa: PLR0913 - one for each number that a cost has
    *,
    forward: PerStage = 1.0,
    backward_input: PerStage = 1.0,
    backward_weight: PerStage = 1.0,
    backward: PerStage | None = None,
    transfer: PerStage = 0.0,
    activation_bytes: PerStage = 0.0,
    weight_bytes: PerStage = 0.0,
    weight_share: PerStage = 1.0,
    time_unit: str = "",
) -> Cost:
    """Numbers of your own, each one for all stages or a list with one for each stage.

    Args:
        forward: time of F.
        backward_input: time of B, the backward for the stage's input.
        backward_weight: time of W, the backward for the stage's weights.
        backward: time of BW, both at once; None is B and W one after the other.
        transfer: latency of a hop between two ranks, by the stage that sends.
        activation_bytes: bytes that F leaves in memory for the backward.
        weight_bytes: bytes that stay: parameters, gradients, state of the optimizer.
        weight_share: part of the activation that is held for W after B; above 1 where B adds to it.
        time_unit: what the times are in, as printed; `s` is shown as ms where that is shorter.

    Raises:
        ConfigError: a number is negative, or there are different counts of stages.
    """
    return Cost(
        forward=forward,
        backward_input=backward_input,
        backward_weight=backward_weight,
        backward=backward,
        transfer=transfer,
        activation_bytes=activation_bytes,
        weight_bytes=weight_bytes,
        weight_share=weight_share,
        time_unit=time_unit,
    )


@register("cost", PROFILED)
def profiled(*, path: Path) -> Cost:
    """What `mode=profile` measured, in seconds and bytes.

    Args:
        path: the `profile.yaml` of that run.

    Raises:
        ConfigError: there is no such file, or it holds no profile.
    """
    return read_profile(path).as_cost()


def fitting(cost: Cost | None, num_stages: int | None) -> Cost | None:
    """The cost where it has numbers for so many stages, or for any; None otherwise."""
    if cost is None or num_stages is None or cost.num_stages in (None, num_stages):
        return cost
    return None


def stage_faults(component: Component, cost: Cost, num_stages: int) -> Iterator[Fault]:
    """What is wrong with a cost for a schedule of so many stages."""
    if fitting(cost, num_stages) is not None:
        return
    fields = [name for name in cost.numbers() if isinstance(getattr(cost, name), tuple)]
    written = [f"cost.{name}" for name in fields if name in component.options]
    path, remedy = (written or ["cost"])[0], f"Give {num_stages}, or a single number for all"
    if component.name == PROFILED:
        path, remedy = _PATH, f"{_AGAIN}, or choose another pipeline.chunks_per_rank"
    yield Fault(
        path,
        f"must have a number for each of the {num_stages} stages (pipeline.ranks × chunks per "
        f"rank), but has {cost.num_stages}. {remedy}.",
    )


def profile_faults(
    component: Component, *, model: ModelConfig, loss: Component, pipeline: PipelineConfig
) -> Iterator[Fault]:
    """How a profile was made for another run than the one that has these parts.

    Args:
        component: the cost, a profile that can be read.
        model: chunks of the model.
        loss: the loss, which the last stage's times include.
        pipeline: ranks, partition and size of a microbatch.
    """
    path = component.options["path"]
    measured = read_profile(path).made_for
    wanted = made_for(model=model, loss=loss, pipeline=pipeline, num_stages=measured.num_stages)
    for name, remedy in _REMEDIES.items():
        has, is_now = getattr(measured, name), getattr(wanted, name)
        if has != is_now:
            what = f"{name.replace('_', ' ')} {_shown(is_now)}"
            yield _misfit(f"{what}, but {path} was for {_shown(has)}", f"{_AGAIN}, or {remedy}")
    if measured.model != wanted.model:
        change = _first_change(measured, wanted)
        yield _misfit(f"this model, but {path} was for another: {change}", _AGAIN)


def _misfit(what: str, remedy: str) -> Fault:
    return Fault(_PATH, f"must be measured with {what}. {remedy}.")


def _shown(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else f"{value}"


def _first_change(measured: MadeFor, wanted: MadeFor) -> str:
    """The first model chunk in which two models differ."""
    for index, (has, is_now) in enumerate(zip(measured.model, wanted.model, strict=False)):
        if has != is_now:
            return f"model.chunks[{index}] was `{has}` and is `{is_now}`"
    return f"it had {len(measured.model)} model.chunks and this has {len(wanted.model)}"
