from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppframe.errors import ConfigError
from ppframe.schedule import ActionKind, Placement, build_schedule, forward_only, verify
from ppframe.schedule.walk import ComputeWalk
from tests.schedule.drawings import assert_same_grid
from tests.strategies import placements, quick


@quick
@given(placements(), st.integers(1, 12))
def test_any_placement_and_number_of_microbatches(placement: Placement, microbatches: int) -> None:
    schedule = forward_only(placement, microbatches)
    verify(schedule)
    assert schedule.forward_only
    assert schedule.num_microbatches == microbatches
    assert {a.kind for row in schedule.actions for a in row} == {ActionKind.F}
    assert sum(map(len, schedule.actions)) == microbatches * len(placement)


def test_drawing_of_a_loop() -> None:
    drawing = """
        0F0  .
        0F1  1F0
        2F0  1F1
        2F1  3F0
        0F2  3F1
        2F2  1F2
        .    3F2
    """
    # 0F2 runs while 1F2 can't: one microbatch alone goes from rank to rank.
    drawing = drawing.replace("2F2  1F2", ".    1F2\n        2F2  .")
    assert_same_grid(forward_only(Placement.loop(2, 2), 3), drawing)


@pytest.mark.parametrize(("ranks", "chunks", "microbatches"), [(4, 1, 8), (4, 2, 8), (3, 3, 6)])
def test_a_loop_with_whole_groups_never_waits_once_it_is_full(
    ranks: int, chunks: int, microbatches: int
) -> None:
    walk = ComputeWalk(forward_only(Placement.loop(ranks, chunks), microbatches))
    assert max(ends[-1] for ends in walk.ends) == microbatches * chunks + ranks - 1


def test_a_schedule_gives_its_placement_and_name() -> None:
    schedule = build_schedule("1f1b", ranks=3, microbatches=2)
    assert forward_only(schedule, 5).placement == schedule.placement
    assert forward_only(schedule, 5).name == "1f1b-forward"
    assert forward_only(Placement.loop(2), 5).name == "forward"


@pytest.mark.parametrize("microbatches", [0, -1])
def test_there_is_at_least_one_microbatch(microbatches: int) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        forward_only(Placement.loop(2), microbatches)
