"""Bubbles, peaks and the critical path, worked out by hand."""

from __future__ import annotations

import pytest

from ppframe.schedule import Placement, build_schedule, forward_only, lower
from ppframe.simulator import Cost, simulate
from tests.simulator.shapes import compute_only

TWO_RANKS = compute_only("0F0 0F1 0BW0 0BW1", "1F0 1BW0 1F1 1BW1")


def test_the_bubble_is_the_idle_share_of_all_ranks() -> None:
    report = simulate(TWO_RANKS)
    assert report.makespan == 9
    assert report.idle == (3, 3)
    assert report.bubble_fraction == pytest.approx(6 / 18)


def test_the_span_bubble_is_that_of_the_rank_with_the_longest_span() -> None:
    # Rank 0 spans 0 to 11.75 and works 2.5 of it; rank 1 spans 0.5 to 11 without a gap.
    report = simulate(TWO_RANKS, Cost((0.5, 3), (0.25, 1), (0.5, 1.25)))
    assert report.makespan == pytest.approx(11.75)
    assert report.span_bubble == pytest.approx(1 - 2.5 / 11.75)
    assert report.bubble_fraction == pytest.approx(1 - (2.5 + 10.5) / 23.5)


def test_without_waiting_inside_the_ranks_there_is_no_span_bubble() -> None:
    report = simulate(forward_only(Placement.loop(3), 4))
    assert report.span_bubble == 0
    assert report.bubble_fraction == pytest.approx(1 - 4 / 6)


def test_a_pair_is_in_flight_from_its_forward_to_its_last_backward_part() -> None:
    split = compute_only("0F0 0F1 0B0 0B1 0F2 0B2 0W0 0W1 0W2")
    report = simulate(split)
    assert report.peak_in_flight == (3,)
    assert all(type(peak) is int for peak in report.peak_in_flight)


@pytest.mark.parametrize(("share", "peak"), [(0, 2.0), (0.25, 2.0), (0.75, 2.5), (1, 3.0)])
def test_b_frees_all_but_the_share_that_w_needs(share: float, peak: float) -> None:
    split = compute_only("0F0 0F1 0B0 0B1 0F2 0B2 0W0 0W1 0W2")
    assert simulate(split, Cost(1, 1, 1, weight_share=share)).peak_activation == (peak,)


def test_w_keeps_the_whole_activation_unless_a_share_is_given() -> None:
    report = simulate(build_schedule("dora", 4, 8, chunks_per_rank=2))
    assert report.peak_activation == tuple(map(float, report.peak_in_flight))


def test_bytes_are_those_of_the_stages_in_flight_and_those_that_stay() -> None:
    cost = Cost(1, 1, 1, activation_bytes=(10, 100, 1000), weight_bytes=(1, 2, 4))
    schedule = compute_only(
        "0F0 0F1 2F0 2BW0 2F1 2BW1 0BW0 0BW1", "1F0 1F1 1BW0 1BW1", placement=Placement((0, 1, 0))
    )
    assert simulate(schedule, cost).peak_bytes == (10 + 10 + 1000 + 1 + 4, 200 + 2)


def test_bytes_of_a_split_backward_follow_the_share() -> None:
    cost = Cost(1, 1, 1, activation_bytes=100, weight_share=0.25)
    split = compute_only("0F0 0B0 0F1 0B1 0F2 0B2 0W0 0W1 0W2")
    assert simulate(split, cost).peak_bytes == (150,)


def test_without_backward_an_activation_is_let_go_at_once() -> None:
    cost = Cost(1, 1, 1, activation_bytes=(10, 30, 20, 40), weight_bytes=5)
    report = simulate(forward_only(Placement.v(2), 8), cost)
    assert report.peak_in_flight == (1, 1)
    assert report.peak_bytes == (40 + 10, 30 + 10)


def test_the_forward_of_an_overlapped_pair_comes_before_its_backward_frees() -> None:
    pair = compute_only("0F0 (0F1;0BW0) 0BW1")
    assert simulate(pair).peak_in_flight == (2,)


def test_lowering_changes_no_peak() -> None:
    schedule = build_schedule("interleaved-1f1b", 3, 6, chunks_per_rank=2)
    cost = Cost(1, 1, 1, activation_bytes=3)
    for option in (False, True):
        report = simulate(lower(schedule, reduce=option, group=option), cost)
        assert report.peak_in_flight == simulate(schedule).peak_in_flight
        assert report.peak_bytes == simulate(schedule, cost).peak_bytes


def test_the_critical_path_goes_where_the_time_goes() -> None:
    report = simulate(TWO_RANKS, Cost((0.5, 3), (0.25, 1), (0.5, 1.25)))
    path = [str(entry.action) for entry in report.critical_path]
    assert path == ["0F0", "1F0", "1BW0", "1F1", "1BW1", "0BW1"]


def test_the_report_prints_its_figures_and_no_timeline() -> None:
    text = repr(simulate(TWO_RANKS))
    assert "makespan=9.0" in text
    assert "TimelineEntry" not in text
