"""Help for making hundreds of thousands of objects at once."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import repeat

from ppframe.schedule.action import ActionKind, Compute, Transfer


@contextmanager
def paused_collection() -> Iterator[None]:
    """Keep the cycle collector from running: it takes half of the time to look for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def computes(kind: ActionKind, pairs: Iterable[tuple[int, int]]) -> list[Compute]:
    """An action of this kind for each pair of stage and microbatch; the pairs are not checked."""
    return [tuple.__new__(Compute, (stage, kind, microbatch)) for stage, microbatch in pairs]


def transfers(kind: ActionKind, stage: int, num_microbatches: int) -> list[Transfer]:
    """A stage's transfers of this kind, for every microbatch."""
    fields = zip(repeat(stage), repeat(kind), range(num_microbatches), strict=False)
    return list(map(partial(tuple.__new__, Transfer), fields))
