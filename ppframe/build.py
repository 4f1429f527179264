"""The composition root: from a checked configuration to the objects of a run, read downwards.

::

    RunConfig ─┬─ engine                          how ranks come to exist
               ├─ parts: modules, dataset, loss, optimizer, learning rate, sinks
               ├─ pipeline                        the modules, cut and placed
               └─ trainer, recorder               what drives and what remembers
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast, final

import numpy
import torch
from torch import nn

from ppframe.config import (
    ChunkSpec,
    RunConfig,
    make_component,
    make_cost,
    make_options,
    make_schedule,
    takes_cost,
)
from ppframe.config import make_target as make_chunk
from ppframe.config.targets import locate
from ppframe.data import Dataset
from ppframe.engine import Engine, Ranks
from ppframe.errors import ConfigError, Fault, PPFrameError
from ppframe.metrics import RunInfo, Sink
from ppframe.runtime import Member, Pipeline
from ppframe.schedule.cost import Cost
from ppframe.stage.batch_loss import LossFunction
from ppframe.stage.randomness import mixed
from ppframe.training.fit import Fitted, misfit
from ppframe.training.lr_schedule import LRSchedule
from ppframe.training.optim import OptimizerFactory, optimizer_from_class
from ppframe.training.recorder import RunRecorder
from ppframe.training.trainer import Trainer, TrainerSettings
from ppframe.training.update import Update

_T = TypeVar("_T")
_MAX_NAME_LETTERS = 100


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run is made of before ranks come into it.

    Args:
        modules: model chunks in forward order.
        dataset: training and validation batches.
        loss: of an output and its target.
        make_optimizer: makes the optimizer of a rank.
        lr_schedule: multiplier of the learning rate by step.
        sinks: places that metrics go to; not started.
    """

    modules: Sequence[nn.Module]
    dataset: Dataset
    loss: LossFunction
    make_optimizer: OptimizerFactory
    lr_schedule: LRSchedule
    sinks: Sequence[Sink]


def build_engine(config: RunConfig) -> Engine:
    """The engine.

    Raises:
        ConfigError: it refuses its options.
    """
    return _made(Engine, "engine", make_component("engine", config.engine))


def build_parts(config: RunConfig, device: torch.device | str = "cpu") -> Parts:
    """All parts; relative paths in them start from the launch folder.

    Args:
        config: the run.
        device: where parameters are made; `meta` makes none.

    Raises:
        ConfigError: with what every one of them refuses.
    """
    faults: list[Fault] = []
    with chdir(config.launch.folder):
        modules = _tried(lambda: build_modules(config, device), "model", faults)
        dataset = _tried(lambda: _dataset(config), "data", faults)
        loss = _tried(lambda: _callable("loss", config), "loss", faults)
        make_optimizer = _tried(lambda: _optimizer(config), "optimizer", faults)
        lr_schedule = _tried(lambda: _callable("lr_schedule", config), "lr_schedule", faults)
        sinks = [_tried(partial(_sink, config, name), "logger", faults) for name in config.logger]
    if faults:
        raise ConfigError(list(dict.fromkeys(faults)))
    return Parts(
        modules=cast(list[nn.Module], modules),
        dataset=cast(Dataset, dataset),
        loss=cast(LossFunction, loss),
        make_optimizer=cast(OptimizerFactory, make_optimizer),
        lr_schedule=cast(LRSchedule, lr_schedule),
        sinks=cast(list[Sink], sinks),
    )


def build_modules(config: RunConfig, device: torch.device | str = "cpu") -> list[nn.Module]:
    """The model chunks, repeats written out, in forward order.

    Each is built under random numbers of its own, seeded by the run's seed and the chunk's place
    in the unsplit model, so its parameters are the same for any ranks, schedule and engine. The
    generators are left as they were.

    Args:
        config: the run.
        device: where parameters are made; `meta` makes none.

    Raises:
        ConfigError: with every chunk that can't be built.
    """
    faults: list[Fault] = []
    modules: list[nn.Module | None] = []
    with chdir(config.launch.folder):
        for entry, spec in enumerate(config.model.chunks):
            path = f"model.chunks[{entry}]"
            for _ in range(spec.repeat):
                seed = mixed(config.seed, len(modules))
                modules.append(_tried(partial(_module, spec, path, seed, device), path, faults))
    if faults:
        raise ConfigError(list(dict.fromkeys(faults)))
    return cast(list[nn.Module], modules)


def build_cost(config: RunConfig) -> Cost:
    """What the actions of a step cost, one number per stage or one for all.

    Raises:
        ConfigError: the builder refuses its options.
    """
    with chdir(config.launch.folder):
        return make_cost(config.cost)


def build_pipeline(
    config: RunConfig,
    parts: Parts,
    devices: Sequence[torch.device] | None = None,
    member: Member | None = None,
) -> Pipeline:
    """The pipeline of the configured ranks, chunks and schedule.

    Args:
        config: the run.
        parts: the modules and the loss among them.
        devices: one for each rank; None leaves the modules where they are.
        member: which rank this process runs; None where it runs all.
    """
    asked, cost = config.pipeline, build_cost(config)
    with chdir(config.launch.folder):
        schedule = make_schedule(config.schedule, asked, cost=cost)
    is_made_to_measure = bool(config.schedule.options) or takes_cost(config.schedule)
    by_name = None if is_made_to_measure else config.schedule.name
    return Pipeline(
        parts.modules,
        loss=parts.loss,
        schedule=by_name or schedule,
        ranks=schedule.ranks,
        chunks_per_rank=schedule.chunks_per_rank,
        microbatch_size=asked.microbatch_size if by_name else None,
        num_microbatches=None if by_name else asked.num_microbatches,
        devices=devices,
        partition=asked.partition,
        recompute=asked.recompute,
        seed=config.seed,
        member=member,
    )


def build_trainer(config: RunConfig, parts: Parts, pipeline: Pipeline, ranks: Ranks) -> Trainer:
    """The trainer of a pipeline."""
    update = Update(
        pipeline.parameters_by_rank(),
        make_optimizer=parts.make_optimizer,
        lr_schedule=parts.lr_schedule,
        clip_grad_norm=config.clip_grad_norm,
        total=ranks.total,
    )
    settings = TrainerSettings(
        num_steps=config.steps,
        batch_size=config.pipeline.batch_size,
        num_microbatches=config.pipeline.num_microbatches,
        seed=config.seed,
        eval_every_steps=config.evaluation.every_steps,
        eval_num_batches=config.evaluation.num_batches,
        measure_every=config.measure_every,
        trace=config.trace,
    )
    return Trainer(
        pipeline,
        parts.dataset,
        update=update,
        loss=parts.loss,
        settings=settings,
        hold=ranks.hold,
    )


def build_recorder(config: RunConfig, sinks: Sequence[Sink], ranks: Ranks) -> RunRecorder:
    """The recorder of the run; jobs of a sweep belong to one group."""
    launch = config.launch
    sweep, name = launch.sweep_dir, "/".join(launch.run_dir.parts[-2:])
    info = RunInfo(
        run_dir=launch.run_dir,
        job_type=config.mode,
        name=name[-_MAX_NAME_LETTERS:],
        group="" if sweep is None else "/".join(sweep.parts[-2:])[-_MAX_NAME_LETTERS:],
        num_steps=config.steps if config.mode == "train" else 0,
        config=config.resolved,
    )
    return RunRecorder(info, sinks, hold=ranks.hold, leads=ranks.leads)


def misfits(config: RunConfig, parts: Parts) -> list[Fault]:
    """Where data, model chunks and loss don't fit each other, tried before anything runs.

    Args:
        config: the run.
        parts: the dataset and the loss among them; the modules are made anew, without memory.

    Returns:
        the first misfit; none where everything fits, or where it can't be told.
    """
    batches = parts.dataset.validation_batches(config.pipeline.microbatch_size, 1)
    batch = next(iter(batches), None)
    try:
        modules = build_modules(config, "meta")
    except ConfigError:  # made with real numbers they may be sound
        return []
    if batch is None:
        return []
    chunks = config.model.chunks
    names = [f"model.chunks[{i}]" for i, spec in enumerate(chunks) for _ in range(spec.repeat)]
    with _seeded(config.seed):
        return misfit(Fitted(modules, names, batch, parts.loss))


def _sink(config: RunConfig, name: str) -> Sink:
    path = f"logger.{name}"
    return _made(Sink, path, make_component("logger", config.logger[name]))


def _dataset(config: RunConfig) -> Dataset:
    return _made(Dataset, "data", make_component("data", config.data))


def _optimizer(config: RunConfig) -> OptimizerFactory:
    component = config.optimizer
    if component.target is not None:
        return optimizer_from_class(locate(component.target), make_options(component, "optimizer"))
    factory: OptimizerFactory = make_component("optimizer", component)
    return factory


def _callable(kind: str, config: RunConfig) -> Any:
    made = make_component(kind, getattr(config, kind))
    if not callable(made):
        message = f"must make something to call, but makes a {type(made).__name__}."
        raise ConfigError(message, path=kind)
    return made


def _module(spec: ChunkSpec, path: str, seed: int, device: torch.device | str) -> nn.Module:
    with _seeded(seed), torch.device(device):
        return _made(nn.Module, path, make_chunk(spec.target, path))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The generators of Python, NumPy and torch's CPU seeded, and put back at the end."""
    python, arrays = random.getstate(), numpy.random.get_state()
    with torch.random.fork_rng(devices=()):
        random.seed(seed)
        numpy.random.seed(seed % (1 << 32))
        torch.default_generator.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            numpy.random.set_state(arrays)


def _tried(make: Callable[[], _T], path: str, faults: list[Fault]) -> _T | None:
    """What is made, or None after noting why it can't be."""
    try:
        return make()
    except ConfigError as error:
        faults += (replace(fault, path=fault.path or path) for fault in error.faults)
    except PPFrameError as error:
        faults.append(Fault(path, str(error)))
    return None


def _made(kind: Callable[..., _T], path: str, made: Any) -> _T:
    """What was made, which must be of a kind; the kind may be abstract."""
    if not (isinstance(kind, type) and isinstance(made, kind)):
        raise ConfigError(
            f"must make a {kind.__name__}, but makes a {type(made).__name__}.", path=path
        )
    return cast(_T, made)
