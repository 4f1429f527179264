from __future__ import annotations

import pytest

from ppframe.errors import ConfigError
from ppframe.schedule import Shape, build_schedule, lower, schedule_facts, verify
from ppframe.simulator import Cost, simulate
from tests.schedule.drawings import assert_same_grid

# A forward and a whole backward take the same time: the paper's slots.
SLOTS = Cost(forward=1, backward_input=1, backward_weight=1, backward=1)
SHAPES = [(ranks, units) for ranks in (2, 4, 6, 8) for units in (1, 2, 3, 5)]


def test_drawing_of_one_unit() -> None:
    """Worked by hand: a pair sets out in slots 0 and 2, and turns back after P slots."""
    assert_same_grid(
        build_schedule("chimera", ranks=4, microbatches=4),
        """
        0F0   .     .     0F1
        0F2   1F0   1F1   0F3
        .     2F1   2F0   .
        3F1   1F2   1F3   3F0
        3BW1  2F3   2F2   3BW0
        3F3   2BW1  2BW0  3F2
        3BW3  1BW0  1BW1  3BW2
        0BW0  2BW3  2BW2  0BW1
        .     1BW2  1BW3  .
        0BW2  .     .     0BW3
        """,
    )


def test_a_second_unit_begins_while_the_first_ends() -> None:
    """Its first forward fills what rank 0 leaves idle after 0BW0, 2 P slots after 0F0."""
    rows = build_schedule("chimera", ranks=4, microbatches=8).actions
    assert " ".join(map(str, rows[0])) == (
        "0F0 0F2 3F1 3BW1 3F3 3BW3 0BW0 0F4 0BW2 0F6 3F5 3BW5 3F7 3BW7 0BW4 0BW6"
    )
    assert " ".join(map(str, rows[3])) == (
        "0F1 0F3 3F0 3BW0 3F2 3BW2 0BW1 0F5 0BW3 0F7 3F4 3BW4 3F6 3BW6 0BW5 0BW7"
    )


def test_microbatches_take_turns_on_the_chains() -> None:
    schedule = build_schedule("chimera", ranks=4, microbatches=8)
    assert [schedule.chain(m) for m in range(8)] == [0, 1] * 4
    assert schedule.owners(2) == (0, 1, 2, 3)
    assert schedule.owners(3) == (3, 2, 1, 0)


@pytest.mark.parametrize(("ranks", "units"), SHAPES)
def test_the_bubble_is_that_of_the_paper_where_a_backward_takes_as_long_as_a_forward(
    ranks: int, units: int
) -> None:
    microbatches = units * ranks
    report = simulate(build_schedule("chimera", ranks, microbatches), SLOTS)
    assert report.makespan == 2 * microbatches + ranks - 2
    assert report.bubble_fraction == pytest.approx((ranks - 2) / (2 * microbatches + ranks - 2))


@pytest.mark.parametrize("ranks", [4, 6, 8])
def test_the_bubble_of_one_unit_where_a_backward_takes_two_forwards(ranks: int) -> None:
    report = simulate(build_schedule("chimera", ranks, ranks), Cost(1, 1, 1))
    assert report.bubble_fraction == pytest.approx((ranks - 2) / (1.5 * ranks + ranks - 2))


@pytest.mark.parametrize(("ranks", "units"), SHAPES)
def test_facts_hold_for_every_size(ranks: int, units: int) -> None:
    shape = Shape(ranks, 1, units * ranks)
    facts = schedule_facts("chimera")
    assert facts is not None
    schedule = build_schedule("chimera", ranks, shape.microbatches)
    for legal in (schedule, lower(schedule, reduce=True), lower(schedule, group=True)):
        verify(legal)
        report = simulate(legal)
        assert facts.makespan(shape) == report.makespan
        assert facts.peak_in_flight(shape) == report.peak_in_flight


def test_more_units_leave_gaps_inside() -> None:
    """With P 8 and M 32 the bubble is 30 of 126; that of 1F1B is 21 of 117."""
    chimera = simulate(build_schedule("chimera", ranks=8, microbatches=32))
    plain = simulate(build_schedule("1f1b", ranks=8, microbatches=32))
    assert chimera.bubble_fraction == pytest.approx(30 / 126)
    assert plain.bubble_fraction == pytest.approx(21 / 117)


@pytest.mark.parametrize(
    ("ranks", "microbatches", "path", "nearest"),
    [(3, 6, "ranks", 4), (1, 1, "ranks", 2), (4, 6, "microbatches", 8), (4, 1, "microbatches", 4)],
)
def test_sizes_that_do_not_fit_are_refused_with_the_nearest_that_does(
    ranks: int, microbatches: int, path: str, nearest: int
) -> None:
    with pytest.raises(ConfigError, match=f"nearest that works is {nearest}") as caught:
        build_schedule("chimera", ranks, microbatches)
    assert caught.value.path == path


def test_it_has_one_stage_of_a_chain_on_each_rank() -> None:
    with pytest.raises(ConfigError, match="must be 1 for `chimera`, but is 2"):
        build_schedule("chimera", 4, 4, chunks_per_rank=2)
