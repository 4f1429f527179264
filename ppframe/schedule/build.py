"""Schedules by name."""

from __future__ import annotations

import inspect
from numbers import Real
from typing import Any

from ppframe.errors import ConfigError
from ppframe.registry import builder, canonical_name, unknown_name
from ppframe.schedule import generators as generators  # registers the built-in ones
from ppframe.schedule.bulk import paused_collection
from ppframe.schedule.cost import Cost
from ppframe.schedule.generators.facts import (
    KIND,
    Shape,
    nearest_taken,
    require_taken,
    schedule_facts,
)
from ppframe.schedule.ir import Schedule

_GIVEN = ("ranks", "microbatches", "chunks_per_rank")


def build_schedule(
    name: str,
    ranks: int,
    microbatches: int,
    *,
    chunks_per_rank: int | None = None,
    **options: Any,
) -> Schedule:
    """The schedule of this name.

    Args:
        name: a registered generator; `_` and `-` count as the same.
        ranks: pipeline ranks (P).
        microbatches: microbatches of a batch (M).
        chunks_per_rank: stages of each rank (V); None is the schedule's own number.
        options: options of the generator; `_` stands for `-`.

    Raises:
        ConfigError: no such schedule or option, or the schedule doesn't take these numbers.

    Example:
        >>> build_schedule("1f1b", ranks=2, microbatches=2).actions[1]
        (1F0, 1BW0, 1F1, 1BW1)
    """
    build = builder(KIND, name)
    _require_options(canonical_name(KIND, name), inspect.signature(build), options)
    if chunks_per_rank is not None:
        options["chunks_per_rank"] = chunks_per_rank
    with paused_collection():
        schedule = build(ranks=ranks, microbatches=microbatches, **options)
    if not isinstance(schedule, Schedule):
        raise ConfigError(
            f"schedule `{name}` must build a Schedule, but builds {type(schedule).__name__}.",
            path="schedule.name",
        )
    return schedule


def nearest_microbatches(
    name: str, ranks: int, microbatches: int, chunks_per_rank: int | None = None
) -> int:
    """The number of microbatches nearest to this one that the schedule takes; of two the larger.

    Raises:
        ConfigError: no such schedule, or it doesn't take these ranks and chunks at all.

    Example:
        >>> nearest_microbatches("dora-dfs", ranks=4, microbatches=7)
        7
    """
    facts = schedule_facts(name)
    if facts is None:
        return microbatches
    chunks = facts.chunks_per_rank if chunks_per_rank is None else chunks_per_rank
    shape = Shape(ranks, chunks, microbatches)
    works = nearest_taken(facts, shape)
    taken = shape if works is None else shape._replace(microbatches=works)
    require_taken(canonical_name(KIND, name), facts, taken)
    return taken.microbatches


def _require_types(options: dict[str, Any]) -> None:
    """Check the options that several generators have in common."""
    cost, limit = options.get("cost"), options.get("memory_limit")
    if cost is not None and not isinstance(cost, Cost):
        raise ConfigError(
            f"must be a Cost, but is {cost!r}. Make one, such as Cost(1, 1, 1).",
            path="schedule.cost",
        )
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Real)):
        raise ConfigError(
            f"must be a number, but is {limit!r}. Leave it out for the schedule's own.",
            path="schedule.memory_limit",
        )


def _require_options(name: str, signature: inspect.Signature, options: dict[str, Any]) -> None:
    """Check that a generator has the options that are given, and is given those that it needs."""
    known = [option for option in signature.parameters if option not in _GIVEN]
    _require_types(options)
    for option in options:
        if option not in known:
            what = f"option of schedule `{name}`"
            raise ConfigError(unknown_name(what, option, known), path=f"schedule.{option}")
    for option in known:
        needed = signature.parameters[option].default is inspect.Parameter.empty
        if needed and option not in options:
            raise ConfigError(f"must be given for `{name}`, but is not.", path=f"schedule.{option}")
