from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppframe.errors import ScheduleError
from ppframe.schedule import Placement
from tests.strategies import quick

SIZES = st.integers(1, 6)


@quick
@given(SIZES, SIZES)
def test_a_loop_starts_each_chunk_at_rank_zero(ranks: int, chunks: int) -> None:
    placement = Placement.loop(ranks, chunks)
    assert list(placement) == [stage % ranks for stage in range(ranks * chunks)]
    assert placement.chunks_per_rank == chunks


@quick
@given(SIZES, SIZES)
def test_a_v_turns_at_the_ends(ranks: int, chunks: int) -> None:
    """SCHEDULES: with s = q P + j, rank j for even q, P - 1 - j for odd q."""
    placement = Placement.v(ranks, chunks)
    for stage in range(ranks * chunks):
        chunk, step = divmod(stage, ranks)
        assert placement[stage] == (step if chunk % 2 == 0 else ranks - 1 - step)


def test_stages_of_a_rank_are_in_forward_order() -> None:
    assert Placement.loop(4, 2).stages_of(1) == (1, 5)
    assert Placement.v(4).stages_of(1) == (1, 6)


def test_it_is_a_sequence_of_ranks() -> None:
    placement = Placement((0, 1, 1, 0))
    assert (len(placement), placement.num_stages, placement.ranks) == (4, 4, 2)
    assert tuple(placement) == (0, 1, 1, 0)
    assert placement == Placement.v(2)


def test_where_ranks_own_different_numbers_the_largest_counts() -> None:
    assert Placement((0, 1, 1)).chunks_per_rank == 2


@pytest.mark.parametrize("owners", [(), (1,), (0, 2), (0, -1), (1, 2)])
def test_every_rank_from_zero_up_has_a_stage(owners: tuple[int, ...]) -> None:
    with pytest.raises(ScheduleError, match="must give a stage to every rank"):
        Placement(owners)
