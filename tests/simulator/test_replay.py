from __future__ import annotations

import pytest

from ppframe.errors import ConfigError, DependencyViolation
from ppframe.schedule import Action, build_schedule, lower
from ppframe.simulator import Cost, replay, simulate
from tests.simulator.shapes import compute_only, lowered

TWO_RANKS = compute_only("0F0 0F1 0BW0 0BW1", "1F0 1BW0 1F1 1BW1")
MEASURED = {
    Action.parse(text): duration
    for text, duration in {
        "0F0": 1, "0F1": 2, "0BW0": 3, "0BW1": 1, "1F0": 4, "1BW0": 1, "1F1": 1, "1BW1": 5,
    }.items()
}  # fmt: skip


def test_each_action_takes_the_time_it_was_measured_to_take() -> None:
    report = replay(TWO_RANKS, MEASURED)
    times = {str(entry.action): (entry.start, entry.end) for entry in report.timeline}
    assert times == {
        "0F0": (0, 1), "0F1": (1, 3), "0BW0": (6, 9), "0BW1": (12, 13),
        "1F0": (1, 5), "1BW0": (5, 6), "1F1": (6, 7), "1BW1": (7, 12),
    }  # fmt: skip
    assert report.makespan == 13
    assert report.bubble_fraction == pytest.approx(1 - 18 / 26)


def test_durations_may_be_given_by_position() -> None:
    by_position = [[1, 2, 3, 1], [4, 1, 1, 5]]
    assert replay(TWO_RANKS, by_position) == replay(TWO_RANKS, MEASURED)


def test_hops_delay_as_in_a_simulation() -> None:
    units = {action: 2 if "B" in str(action) else 1 for action in MEASURED}
    replayed = replay(TWO_RANKS, units, transfer=(0.5, 0.25))
    assert replayed == simulate(TWO_RANKS, Cost(1, 1, 1, transfer=(0.5, 0.25)))


def test_measured_transfers_and_reductions_are_not_read() -> None:
    schedule = lower(build_schedule("1f1b", 2, 3), reduce=True)
    rows = [[1.0 if str(a)[1:2] in "FB" else 99.0 for a in row] for row in schedule.actions]
    durations = {a: t for row, ts in zip(schedule.actions, rows, strict=True)
                 for a, t in zip(row, ts, strict=True)}  # fmt: skip
    wanted = simulate(schedule, Cost(1, 1, 1, backward=1))
    assert replay(schedule, rows) == replay(schedule, durations) == wanted


def test_an_overlapped_pair_takes_its_own_time_or_that_of_its_parts() -> None:
    pair = compute_only("0F0 (0F1;0BW0) 0BW1")
    parts = {Action.parse(text): 1.0 for text in ("0F0", "0F1", "0BW0", "0BW1")}
    assert replay(pair, parts).makespan == 4
    assert replay(pair, {**parts, Action.parse("(0F1;0BW0)"): 1.5}).makespan == 3.5


def test_a_computation_that_was_not_measured_is_a_fault() -> None:
    missing = {action: t for action, t in MEASURED.items() if str(action) != "1F1"}
    with pytest.raises(ConfigError, match=r"none for 1F1 \(7 given\)"):
        replay(TWO_RANKS, missing)


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_a_duration_is_a_finite_number_from_0(wrong: float) -> None:
    with pytest.raises(ConfigError, match="duration of 0F1 must be a finite number"):
        replay(TWO_RANKS, {**MEASURED, Action.parse("0F1"): wrong})


def test_lists_of_another_length_are_a_fault() -> None:
    with pytest.raises(ConfigError, match=r"\[4, 3\] \(actions \[4, 4\]\)"):
        replay(TWO_RANKS, [[1, 1, 1, 1], [1, 1, 1]])


def test_an_illegal_hop_is_a_fault() -> None:
    with pytest.raises(ConfigError, match=r"cost\.transfer"):
        replay(TWO_RANKS, MEASURED, transfer=-1)


def test_a_list_that_stops_raises_what_verify_says() -> None:
    with pytest.raises(DependencyViolation):
        replay(lowered("0BW0 0F0"), [[1, 1]])
