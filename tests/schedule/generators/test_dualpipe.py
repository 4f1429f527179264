from __future__ import annotations

import pytest

from ppframe.errors import ConfigError
from ppframe.schedule import (
    ActionKind,
    Compute,
    Overlap,
    Shape,
    build_schedule,
    lower,
    schedule_facts,
    verify,
)
from ppframe.simulator import Cost, simulate
from tests.schedule.drawings import assert_same_grid

SHAPES = [
    (ranks, 2 * ranks + more) for ranks in (2, 4, 6, 8) for more in (0, 2, 4, ranks, 3 * ranks)
]

DRAWING = """
0F0         .           .           0F1
0F2         1F0         1F1         0F3
0F4         2F1         2F0         0F5
3F1         1F2         1F3         3F0
3B1         2F3         2F2         3B0
3W1         1F4         1F5         3W0
3F3         2BW1        2BW0        3F2
(0F6;3BW3)  (2F5;1BW0)  (2F4;1BW1)  (0F7;3BW2)
(3F5;0BW0)  (1F6;2BW3)  (1F7;2BW2)  (3F4;0BW1)
3BW5        (2F7;1BW2)  (2F6;1BW3)  3BW4
(3F7;0BW2)  2BW5        2BW4        (3F6;0BW3)
3BW7        1BW4        1BW5        3BW6
0B4         2B7         2B6         0B5
0W4         1B6         1B7         0W5
0B6         2W7         2W6         0B7
0W6         1W6         1W7         0W7
"""


def test_drawing() -> None:
    """Rank 0: F0 twice; F0 F1; B1 W1 F1; two pairs; BW1 and a pair; BW1 B0; W B0; W."""
    assert_same_grid(build_schedule("dualpipe", ranks=4, microbatches=8), DRAWING)


@pytest.mark.parametrize(("ranks", "microbatches"), SHAPES)
def test_facts_hold_for_every_size(ranks: int, microbatches: int) -> None:
    shape = Shape(ranks, 1, microbatches)
    facts = schedule_facts("dualpipe")
    assert facts is not None
    schedule = build_schedule("dualpipe", ranks, microbatches)
    for legal in (schedule, lower(schedule, reduce=True), lower(schedule, group=True)):
        verify(legal)
        report = simulate(legal)
        assert facts.makespan(shape) == report.makespan
        assert facts.peak_in_flight(shape) == report.peak_in_flight


@pytest.mark.parametrize(("ranks", "microbatches"), [(2, 4), (4, 8), (4, 10), (8, 20)])
@pytest.mark.parametrize(("forward", "weight"), [(1, 1), (1, 0.5), (2, 1.5), (3, 1)])
def test_bubble_and_activations_are_those_of_the_published_table(
    ranks: int, microbatches: int, forward: float, weight: float
) -> None:
    """F&B as long as both, F as long as B, W no longer; in the table B is the whole backward."""
    backward = forward + weight
    schedule = build_schedule("dualpipe", ranks, microbatches)
    report = simulate(schedule, Cost(forward, forward, weight))
    bubble = (ranks / 2 - 1) * ((forward + backward) + backward - 3 * weight)
    assert report.idle == (bubble,) * ranks
    assert report.peak_activation == (ranks + 1,) * ranks


def test_microbatches_take_turns_on_the_chains() -> None:
    schedule = build_schedule("dualpipe", ranks=4, microbatches=8)
    assert [schedule.chain(m) for m in range(8)] == [0, 1] * 4


def test_the_ranks_are_a_mirror_image_of_each_other() -> None:
    """Exchange the microbatches of a pair, and a rank's list is that of the rank opposite."""
    rows = build_schedule("dualpipe", ranks=6, microbatches=14).actions
    for row, opposite in zip(rows, reversed(rows), strict=True):
        assert [swapped(action) for action in row] == list(opposite)


def swapped(action: object) -> object:
    if isinstance(action, Overlap):
        return Overlap(*(swapped(part) for part in action))  # type: ignore[arg-type]
    assert isinstance(action, Compute)
    return Compute(action.stage, action.kind, action.microbatch ^ 1)


def test_pairs_are_of_a_forward_of_one_chain_and_a_whole_backward_of_the_other() -> None:
    schedule = build_schedule("dualpipe", ranks=4, microbatches=10)
    pairs = [action for row in schedule.actions for action in row if isinstance(action, Overlap)]
    assert pairs
    for forward, backward in pairs:
        assert (forward.kind, backward.kind) == (ActionKind.F, ActionKind.BW)
        assert schedule.chain(forward.microbatch) != schedule.chain(backward.microbatch)


def test_weight_gradients_run_in_the_order_of_their_input_gradients() -> None:
    for row in build_schedule("dualpipe", ranks=6, microbatches=12).actions:
        singles = [action for action in row if isinstance(action, Compute)]
        split = [(a.stage, a.microbatch) for a in singles if a.kind is ActionKind.B]
        assert split == [(a.stage, a.microbatch) for a in singles if a.kind is ActionKind.W]


@pytest.mark.parametrize(
    ("ranks", "microbatches", "path", "nearest"),
    [(3, 6, "ranks", 4), (4, 9, "microbatches", 10), (4, 2, "microbatches", 8)],
)
def test_sizes_that_do_not_fit_are_refused_with_the_nearest_that_does(
    ranks: int, microbatches: int, path: str, nearest: int
) -> None:
    with pytest.raises(ConfigError, match=f"nearest that works is {nearest}") as caught:
        build_schedule("dualpipe", ranks, microbatches)
    assert caught.value.path == path
