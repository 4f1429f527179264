"""When actions run, worked out by hand."""

from __future__ import annotations

import pytest

from ppframe.errors import ConfigError, Deadlock, InternalError, ScheduleError
from ppframe.schedule import Action, Placement, Schedule, verify
from ppframe.simulator import Cost, SimulationReport, simulate, walk
from tests.simulator.shapes import compute_only, lowered

Spans = dict[str, tuple[float, float]]


def spans(report: SimulationReport) -> Spans:
    return {str(entry.action): (entry.start, entry.end) for entry in report.timeline}


def test_an_action_starts_when_its_rank_is_free_and_its_needs_have_come() -> None:
    schedule = compute_only("0F0 0F1 0BW0 0BW1", "1F0 1BW0 1F1 1BW1")
    assert spans(simulate(schedule)) == {
        "0F0": (0, 1), "0F1": (1, 2), "0BW0": (4, 6), "0BW1": (7, 9),
        "1F0": (1, 2), "1BW0": (2, 4), "1F1": (4, 5), "1BW1": (5, 7),
    }  # fmt: skip


def test_a_hop_delays_who_needs_it_and_occupies_nobody() -> None:
    schedule = compute_only("0F0 0F1 0BW0 0BW1", "1F0 1F1 1BW1 1BW0")
    assert spans(simulate(schedule, Cost(1, 1, 1, transfer=0.5))) == {
        "0F0": (0, 1), "0F1": (1, 2), "0BW0": (8, 10), "0BW1": (10, 12),
        "1F0": (1.5, 2.5), "1F1": (2.5, 3.5), "1BW1": (3.5, 5.5), "1BW0": (5.5, 7.5),
    }  # fmt: skip


def test_stages_of_one_rank_hand_over_without_a_hop() -> None:
    schedule = compute_only("0F0 3F0 3BW0 0BW0", "1F0 2F0 2BW0 1BW0", placement=Placement.v(2))
    report = simulate(schedule, Cost(1, 1, 1, transfer=10))
    assert report.makespan == 4 * 3 + 4 * 10  # two hops there, two back; none at the turn


def test_each_stage_has_its_own_costs() -> None:
    cost = Cost((1, 2), (3, 4), (5, 6), transfer=(0.25, 0.75))
    split = simulate(compute_only("0F0 0B0 0W0", "1F0 1B0 1W0"), cost)
    assert spans(split) == {
        "0F0": (0, 1), "1F0": (1.25, 3.25), "1B0": (3.25, 7.25), "1W0": (7.25, 13.25),
        "0B0": (8, 11), "0W0": (11, 16),
    }  # fmt: skip


def test_a_full_backward_hands_its_gradient_on_at_its_end() -> None:
    report = simulate(compute_only("0F0 0BW0", "1F0 1BW0"), Cost(1, 1, 1, backward=1.5))
    assert spans(report)["0BW0"] == (3.5, 5.0)


def test_an_overlapped_pair_takes_the_time_of_both() -> None:
    schedule = compute_only("0F0 0F1 1F0 (1F1;1BW0) 0BW0 1BW1 0BW1", placement=Placement((0, 0)))
    report = simulate(schedule)
    assert spans(report)["(1F1;1BW0)"] == (3, 6)
    assert report.makespan == 12


def test_an_overlapped_pair_waits_for_what_either_needs() -> None:
    rank_0 = "0F0 0F1 (0F2;0BW0) 0BW1 0BW2"
    schedule = compute_only(rank_0, "1F0 1BW0 1F1 1BW1 1F2 1BW2")
    assert spans(simulate(schedule))["(0F2;0BW0)"] == (4, 7)


def test_a_receive_holds_its_rank_a_send_does_not() -> None:
    schedule = lowered(
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0BW0 0RECV_B1 0BW1",
        "1RECV_F0 1RECV_F1 1F0 1BW0 1SEND_B0 1F1 1BW1 1SEND_B1",
    )
    report = simulate(schedule, Cost(1, 1, 1, transfer=0.5))
    assert spans(report) == {
        "0F0": (0, 1), "0SEND_F0": (1, 1), "0F1": (1, 2), "0SEND_F1": (2, 2),
        "1RECV_F0": (0, 1.5), "1RECV_F1": (1.5, 2.5), "1F0": (2.5, 3.5), "1BW0": (3.5, 5.5),
        "1SEND_B0": (5.5, 5.5), "1F1": (5.5, 6.5), "1BW1": (6.5, 8.5), "1SEND_B1": (8.5, 8.5),
        "0RECV_B0": (2, 6), "0BW0": (6, 8), "0RECV_B1": (8, 9), "0BW1": (9, 11),
    }  # fmt: skip
    assert report.makespan == 11
    assert [str(entry.action) for entry in report.critical_path] == [
        "0F0", "0F1", "1F0", "1BW0", "1F1", "1BW1", "0BW1",
    ]  # fmt: skip


def test_an_exchange_sends_at_once_and_holds_until_it_has_received() -> None:
    schedule = lowered(
        "0F0 0SEND_F0 0F1 0SEND_F1_0RECV_B0 0BW0 0RECV_B1 0BW1",
        "1RECV_F0 1F0 1BW0 1SEND_B0_1RECV_F1 1F1 1BW1 1SEND_B1",
    )
    verify(schedule)
    report = simulate(schedule, Cost(1, 1, 1, transfer=0.5))
    assert spans(report)["0SEND_F1_0RECV_B0"] == (2, 5)
    assert spans(report)["1SEND_B0_1RECV_F1"] == (4.5, 4.5)  # 0F1 came long ago
    assert spans(report)["0BW0"] == (5, 7)
    assert report.makespan == 10
    assert [str(entry.action) for entry in report.critical_path] == [
        "0F0", "1F0", "1BW0", "1F1", "1BW1", "0BW1",
    ]  # fmt: skip


def test_the_reason_for_a_message_of_an_exchange_is_what_stands_before_it() -> None:
    schedule = lowered(
        "0F0 0SEND_F0 0F1 0SEND_F1_0RECV_B0 0BW0 0RECV_B1 0BW1",
        "1RECV_F0 1F0 1BW0 1SEND_B0_1RECV_F1 1F1 1BW1 1SEND_B1",
    )
    report = simulate(schedule, Cost((9, 1), 1, 1))
    assert [str(entry.action) for entry in report.critical_path][:3] == ["0F0", "0F1", "1F1"]


def test_a_reduction_takes_no_time() -> None:
    report = simulate(lowered("0F0 0BW0 0REDUCE"))
    assert report.makespan == 3
    assert report.timeline[-1][2:] == (3, 3)


def test_the_timeline_lists_rank_by_rank_in_the_order_of_the_lists() -> None:
    report = simulate(compute_only("0F0 0BW0", "1F0 1BW0"))
    names = [f"{entry.rank} {entry.action}" for entry in report.timeline]
    assert names == ["0 0F0", "0 0BW0", "1 1F0", "1 1BW0"]


def test_actions_that_cost_nothing_take_no_time() -> None:
    report = simulate(compute_only("0F0 0BW0", "1F0 1BW0"), Cost(0, 0, 0))
    assert (report.makespan, report.bubble_fraction, report.span_bubble) == (0, 0, 0)


def test_a_rank_without_actions_is_idle() -> None:
    report = simulate(Schedule(((Action.parse("0F0"),), ()), Placement.loop(2), "", True))
    assert (report.makespan, report.idle, report.bubble_fraction) == (1, (0, 1), 0.5)


def test_nothing_to_do_takes_no_time() -> None:
    report = simulate(Schedule(((), ()), Placement.loop(2), "", True))
    assert (report.makespan, report.idle, report.timeline) == (0, (0, 0), ())
    assert report.critical_path == ()


def test_a_schedule_that_stops_raises_what_verify_says() -> None:
    with pytest.raises(Deadlock):
        simulate(compute_only("0F0 0BW0 0F1 0BW1", "1F1 1F0 1BW1 1BW0"))


def test_a_stage_that_is_not_there_raises_what_verify_says() -> None:
    with pytest.raises(ScheduleError):
        simulate(compute_only("0F0 0BW0 3F0"))


def test_a_schedule_that_verifies_and_stops_is_a_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(walk, "verify", lambda schedule: None)
    with pytest.raises(InternalError, match="must simulate to its end"):
        simulate(compute_only("0BW0 0F0"))


def test_costs_for_other_stages_than_the_schedules_are_a_fault() -> None:
    with pytest.raises(ConfigError, match="stages 1"):
        simulate(compute_only("0F0 0BW0"), Cost((1, 2), 1, 1))
