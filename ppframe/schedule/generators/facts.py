"""What a generator declares about its schedules, and how it enters the registry with it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final

from ppframe.errors import ConfigError
from ppframe.registry import builder, canonical_name, names, register
from ppframe.schedule.ir import Schedule

KIND = "schedule"
_FACTS_KIND = "schedule-facts"


@final
class Shape(NamedTuple):
    """The numbers that a generator is given.

    Args:
        ranks: pipeline ranks (P), 1 or more.
        chunks_per_rank: stages of each rank (V), 1 or more.
        microbatches: microbatches (M), 1 or more.
    """

    ranks: int
    chunks_per_rank: int
    microbatches: int

    def __str__(self) -> str:
        return (
            f"ranks {self.ranks}, chunks per rank {self.chunks_per_rank}, "
            f"microbatches {self.microbatches}"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFacts:
    """What holds for every schedule of a generator.

    Times are in unit costs: forward, backward for the input and backward for the weights of one
    stage take 1 each, both backward parts at once take 2, a hop takes nothing.

    Args:
        summary: what it is, in one line.
        placement: how stages lie on ranks; a wave is a V for any even V, bidirectional has two
            chains of stages, one in each direction.
        chunks_per_rank: the schedule's own V.
        min_chunks: least V that it takes.
        max_chunks: largest V that it takes; None is no limit.
        chunks_step: V must be a multiple of it.
        chunks_of: V that its options ask for; None: its own.
        takes_ranks: whether it takes this P.
        takes_microbatches: whether it takes this M, of a P that it takes.
        makespan: first start to last end; None where no closed form is known.
        peak_in_flight: for each rank the most (stage, microbatch) pairs in flight; None where no
            closed form is known.
        reference: paper or system that defines it.
    """

    summary: str
    placement: Literal["loop", "v", "wave", "bidirectional"]
    reference: str
    chunks_per_rank: int = 1
    min_chunks: int = 1
    max_chunks: int | None = None
    chunks_step: int = 1
    chunks_of: Callable[[Mapping[str, Any]], int | None] = lambda _: None
    takes_ranks: Callable[[int], bool] = lambda _: True
    takes_microbatches: Callable[[Shape], bool] = lambda _: True
    makespan: Callable[[Shape], int | None] = lambda _: None
    peak_in_flight: Callable[[Shape], tuple[int, ...] | None] = lambda _: None


Generator = Callable[..., Schedule]


def schedule_generator(name: str, facts: ScheduleFacts) -> Callable[[Generator], Generator]:
    """Decorator that enters a generator and its facts in the registry.

    The generator is called with `ranks`, `microbatches`, `chunks_per_rank` and its own options;
    whoever calls it through the registry may leave `chunks_per_rank` None for its own.

    Args:
        name: how configs call it.
        facts: what it declares.

    Returns:
        the decorator; it gives back the generator with its arguments checked.
    """

    def enter(generate: Generator) -> Generator:
        @functools.wraps(generate)
        def checked(
            ranks: int, microbatches: int, chunks_per_rank: int | None = None, **options: Any
        ) -> Schedule:
            chunks = chunks_per_rank
            if chunks is None:
                chunks = facts.chunks_of(options) or facts.chunks_per_rank
            require_taken(name, facts, Shape(ranks, chunks, microbatches))
            return generate(ranks, microbatches, chunks, **options)

        register(_FACTS_KIND, name)(lambda: facts)
        return register(KIND, name)(checked)

    return enter


def schedule_facts(name: str) -> ScheduleFacts | None:
    """What the generator of this name declares; None for one that was registered without facts.

    Raises:
        ConfigError: no generator has this name.

    Example:
        >>> facts = schedule_facts("1f1b")
        >>> facts.makespan(Shape(ranks=4, chunks_per_rank=1, microbatches=8))
        33
    """
    name = canonical_name(KIND, name)
    if name not in names(_FACTS_KIND):
        return None
    facts = builder(_FACTS_KIND, name)()
    assert isinstance(facts, ScheduleFacts)
    return facts


def require_taken(name: str, facts: ScheduleFacts, shape: Shape) -> None:
    """Check a shape against what the generator takes.

    Raises:
        ConfigError: a number is below 1, or the generator doesn't take it; names the nearest that
            works.
    """
    for path, value in zip(Shape._fields, shape, strict=True):
        if type(value) is not int or value < 1:
            raise ConfigError(
                f"must be a whole number from 1, but is {value!r} ({shape}).",
                path=path,
            )
    nearest = min(max(shape.chunks_per_rank, facts.min_chunks), facts.max_chunks or 10**9)
    nearest -= nearest % facts.chunks_step
    if nearest != shape.chunks_per_rank:
        raise ConfigError(
            f"must be {_limits(facts)} for `{name}`, but is {shape.chunks_per_rank} ({shape}). "
            f"Use {nearest}, or another schedule.",
            path="chunks_per_rank",
        )
    if not facts.takes_ranks(shape.ranks):
        nearest = nearest_ranks(facts, shape.ranks)
        raise ConfigError(
            f"must be a number that `{name}` takes, but is {shape.ranks} ({shape}). The nearest "
            f"that works is {nearest}.",
            path="ranks",
        )
    if not facts.takes_microbatches(shape):
        works = nearest_taken(facts, shape)
        hint = "No number works." if works is None else f"The nearest that works is {works}."
        raise ConfigError(
            f"must be a number that `{name}` takes, but is {shape.microbatches} ({shape}). {hint}",
            path="microbatches",
        )


def nearest_ranks(facts: ScheduleFacts, ranks: int) -> int:
    """The number of ranks nearest to this one that is taken, of two the larger; else this one."""
    by_distance = sorted(range(1, 2 * ranks + 2), key=lambda other: (abs(other - ranks), -other))
    return next(filter(facts.takes_ranks, by_distance), ranks)


def nearest_taken(facts: ScheduleFacts, shape: Shape) -> int | None:
    """The number of microbatches nearest to the shape's that is taken, of two the larger.

    None where nothing near is taken.
    """
    reach = shape.microbatches + 8 * shape.ranks * shape.chunks_per_rank
    for distance in range(reach):
        for microbatches in (shape.microbatches + distance, shape.microbatches - distance):
            wanted = shape._replace(microbatches=microbatches)
            if microbatches >= 1 and facts.takes_microbatches(wanted):
                return microbatches
    return None


def _limits(facts: ScheduleFacts) -> str:
    if facts.chunks_step > 1:
        return f"a multiple of {facts.chunks_step}"
    if facts.max_chunks is None:
        return f"at least {facts.min_chunks}"
    if facts.min_chunks == facts.max_chunks:
        return f"{facts.min_chunks}"
    return f"from {facts.min_chunks} to {facts.max_chunks}"
