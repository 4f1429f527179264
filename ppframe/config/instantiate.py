"""What a checked configuration names, made: a part by its builder, a target by its import path."""

from __future__ import annotations

from typing import Any

from ppframe.config.options import options_of
from ppframe.config.schema import Component, PipelineConfig, Target
from ppframe.config.targets import locate
from ppframe.errors import ConfigError, PPFrameError
from ppframe.registry import builder
from ppframe.schedule import Schedule, build_schedule
from ppframe.schedule.cost import Cost


def make_component(kind: str, component: Component, **given: Any) -> Any:
    """Call the builder of a part, registered or imported alike.

    Args:
        kind: the registry's kind, also the key that errors name.
        component: which builder, and its options.
        given: further keyword arguments, which the configuration can't set.

    Raises:
        ConfigError: the builder refuses its options.
    """
    return call(_builder_of(kind, component), component.options, kind, **given)


def make_options(component: Component, path: str) -> dict[str, Any]:
    """The options of a part, with the targets in them made."""
    return {name: _made(value, f"{path}.{name}") for name, value in component.options.items()}


def make_target(target: Target, path: str) -> Any:
    """Call what an import path names.

    Args:
        target: import path and arguments.
        path: dotted path of the target in the configuration, for errors.

    Raises:
        ConfigError: it raises.
    """
    return call(locate(target.path), target.kwargs, path, args=target.args)


def call(build: Any, options: Any, path: str, args: tuple[Any, ...] = (), **given: Any) -> Any:
    """Call a builder with options in which further targets may stand.

    Raises:
        ConfigError: it raises; the cause is the original error.
    """
    positional = [_made(value, path) for value in args]
    keywords = {name: _made(value, f"{path}.{name}") for name, value in options.items()}
    try:
        return build(*positional, **keywords, **given)
    except PPFrameError:
        raise
    except (Exception, SystemExit) as error:  # of the user's builder: theirs to read
        name = getattr(build, "__qualname__", str(build))
        raise ConfigError(
            f"`{name}` must take these options, but raised {type(error).__name__}: {error}. "
            f"They are {dict(options)}.",
            path=path,
        ) from error


def make_cost(component: Component) -> Cost:
    """What the actions of a step cost.

    Raises:
        ConfigError: the builder refuses its options, or makes something else.
    """
    made = make_component("cost", component)
    if not isinstance(made, Cost):
        raise ConfigError(f"must make a Cost, but makes a {type(made).__name__}.", path="cost")
    return made


def takes_cost(component: Component) -> bool:
    """Whether the generator of a schedule makes it for the cost of its actions."""
    return "cost" in options_of(_builder_of("schedule", component)).named


def make_schedule(
    component: Component, pipeline: PipelineConfig, *, cost: Cost | None = None
) -> Schedule:
    """The schedule of a step of this pipeline.

    Args:
        component: which generator, and its options.
        pipeline: ranks, chunks per rank, and number of microbatches.
        cost: given to a generator that takes it.

    Raises:
        ScheduleError: the generator doesn't take these numbers.
        ConfigError: it refuses its options.
    """
    ranks, microbatches = pipeline.ranks, pipeline.num_microbatches
    given = {"cost": cost} if cost is not None and takes_cost(component) else {}
    if component.name is not None:
        options = make_options(component, "schedule")
        return build_schedule(
            component.name,
            ranks,
            microbatches,
            chunks_per_rank=pipeline.chunks_per_rank,
            **options,
            **given,
        )
    made = make_component(
        "schedule",
        component,
        ranks=ranks,
        microbatches=microbatches,
        chunks_per_rank=pipeline.chunks_per_rank,
        **given,
    )
    if not isinstance(made, Schedule):
        kind = type(made).__name__
        raise ConfigError(f"must make a Schedule, but makes a {kind}.", path="schedule._target_")
    return made


def _builder_of(kind: str, component: Component) -> Any:
    if component.target is not None:
        return locate(component.target)
    return builder(kind, component.label)


def _made(value: Any, path: str) -> Any:
    if isinstance(value, Target):
        return make_target(value, path)
    if isinstance(value, dict):
        return {key: _made(entry, f"{path}.{key}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        entries = [_made(entry, f"{path}[{index}]") for index, entry in enumerate(value)]
        return tuple(entries) if isinstance(value, tuple) else entries
    return value
