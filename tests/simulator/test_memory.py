from __future__ import annotations

from hypothesis import given

from ppframe.schedule import Action, Schedule
from ppframe.simulator import TimelineEntry, simulate
from ppframe.simulator.memory import gains_of, memory_curve
from tests.simulator.shapes import schedules


def ran(*texts: str) -> list[TimelineEntry]:
    """The actions one after the other on rank 0, each of them takes 2."""
    pairs = enumerate(map(Action.parse, texts))
    return [TimelineEntry(0, action, 2.0 * at, 2.0 * at + 2.0) for at, action in pairs]


def test_a_forward_takes_memory_when_it_starts_and_a_backward_frees_it_when_it_ends() -> None:
    curve = memory_curve(ran("0F0", "0F1", "0BW0", "0BW1"), gains_of([3.0], [1.0]))
    assert curve == [(0, 3), (2, 6), (6, 3), (8, 0)]


def test_b_frees_all_but_the_share_that_w_needs() -> None:
    curve = memory_curve(ran("0F0", "0B0", "0W0"), gains_of([4.0], [0.25]))
    assert curve == [(0, 4), (4, 1), (6, 0)]


def test_the_parts_of_a_pair_have_half_of_its_time_each() -> None:
    gains = gains_of([1.0, 10.0], [1.0, 1.0])
    curve = memory_curve(ran("1F0", "(0F1;1BW0)", "0BW1"), gains, 100.0)
    assert curve == [(0, 110), (2, 111), (4, 101), (6, 100)]


@given(schedules().filter(lambda schedule: not schedule.forward_only))
def test_the_highest_point_is_the_peak_that_the_report_states(schedule: Schedule) -> None:
    report = simulate(schedule)
    ones = (1.0,) * schedule.num_stages
    for rank, peak in enumerate(report.peak_in_flight):
        curve = memory_curve((e for e in report.timeline if e.rank == rank), gains_of(ones, ones))
        assert max(level for _, level in curve) == peak
        assert curve[-1][1] == 0
