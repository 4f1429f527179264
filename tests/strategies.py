"""Hypothesis strategies that several test folders share."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ppframe.registry import names
from ppframe.schedule import (
    Placement,
    Schedule,
    Shape,
    build_schedule,
    nearest_microbatches,
    schedule_facts,
)
from ppframe.schedule.generators.facts import nearest_ranks

quick = settings(max_examples=12, deadline=None)
"""For tests whose examples take milliseconds; a busy machine is no failure."""

GENERATORS = tuple(name for name in names("schedule") if schedule_facts(name) is not None)
"""Every registered generator that makes schedules from numbers alone."""


@st.composite
def shapes(
    draw: DrawFn, name: str, *, max_ranks: int = 6, max_chunks: int = 3, max_microbatches: int = 14
) -> Shape:
    """P, V and M that the generator of this name takes; M is larger where it takes no less."""
    facts = schedule_facts(name)
    assert facts is not None
    most = max_chunks if facts.max_chunks is None else min(max_chunks, facts.max_chunks)
    chunks = range(facts.min_chunks, max(most, facts.min_chunks) + 1, facts.chunks_step)
    sizes = st.builds(
        Shape,
        ranks=st.integers(1, max_ranks),
        chunks_per_rank=st.sampled_from(chunks),
        microbatches=st.integers(1, max_microbatches),
    )
    return draw(sizes.map(lambda shape: taken_near(name, shape)))


def taken_near(name: str, shape: Shape) -> Shape:
    """The shape, with the nearest P and M that the generator takes, and its own V if need be."""
    facts = schedule_facts(name)
    assert facts is not None
    _, chunks, microbatches = shape
    ranks = nearest_ranks(facts, shape.ranks)
    fits = facts.min_chunks <= chunks <= (facts.max_chunks or chunks)
    if not fits or chunks % facts.chunks_step:
        chunks = facts.chunks_per_rank
    return Shape(ranks, chunks, nearest_microbatches(name, ranks, microbatches, chunks))


def build(name: str, shape: Shape) -> Schedule:
    """The schedule of a generator for a shape."""
    return build_schedule(
        name, shape.ranks, shape.microbatches, chunks_per_rank=shape.chunks_per_rank
    )


@st.composite
def schedules(draw: DrawFn, *, max_ranks: int = 6, max_microbatches: int = 14) -> Schedule:
    """A schedule of any generator."""
    name = draw(st.sampled_from(GENERATORS))
    shape = draw(shapes(name, max_ranks=max_ranks, max_microbatches=max_microbatches))
    return build(name, shape)


def placements(*, max_ranks: int = 5, max_chunks: int = 3) -> SearchStrategy[Placement]:
    """Loops, Vs, and stages strewn over the ranks in any order."""
    ranks, chunks = st.integers(1, max_ranks), st.integers(1, max_chunks)
    strewn = st.tuples(ranks, chunks).flatmap(
        lambda size: st.permutations(tuple(range(size[0])) * size[1])
    )
    return st.one_of(
        st.builds(Placement.loop, ranks, chunks),
        st.builds(Placement.v, ranks, chunks),
        st.builds(Placement, strewn.map(tuple)),
    )
