"""What holds for every schedule and every cost."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from ppframe.schedule import Action, LoweredSchedule, Schedule, dependencies, lower
from ppframe.simulator import Cost, SimulationReport, TimelineEntry, replay, simulate
from tests.simulator.shapes import DURATIONS, F, costs, schedules

few = settings(max_examples=40)  # each draws a schedule and simulates it

Case = tuple[Schedule | LoweredSchedule, Cost]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A schedule in either form, with costs of its own for each stage."""
    schedule = draw(schedules())
    cost = draw(costs(schedule.num_stages))
    form = draw(st.sampled_from(["compute", "lowered", "grouped"]))
    if form == "compute":
        return schedule, cost
    return lower(schedule, reduce=True, group=form == "grouped"), cost


def work(report: SimulationReport, rank: int) -> float:
    entries = (e for e in report.timeline if e.rank == rank and e.is_compute)
    return sum(entry.duration for entry in entries)


def times_by_recursion(schedule: Schedule, cost: Cost) -> Mapping[Action, tuple[float, float]]:
    """Start and end of each action, the slow way: over and over until nothing changes."""
    stages = schedule.num_stages
    fields = {"F": "forward", "B": "backward_input", "W": "backward_weight", "BW": "backward"}
    hop = cost.of_stages("transfer", stages)
    spans: dict[Action, tuple[float, float]] = {}
    changed = True
    while changed:
        changed = False
        for rank, row in enumerate(schedule.actions):
            free = 0.0
            for action in row:
                needs = [a for any_of in dependencies(action, stages) for a in any_of if a in spans]
                arrivals = [
                    spans[need][1] + (schedule.placement[need.stage] != rank) * hop[need.stage]
                    for need in needs
                ]
                start = max(free, *arrivals, 0.0)
                duration = cost.of_stages(fields[action.kind.value], stages)[action.stage]
                changed |= spans.get(action) != (start, start + duration)
                spans[action] = (start, start + duration)
                free = start + duration
    return spans


@few
@given(st.data())
def test_times_are_those_of_the_dependencies(data: st.DataObject) -> None:
    schedule = data.draw(schedules())
    cost = data.draw(costs(schedule.num_stages))
    report = simulate(schedule, cost)
    wanted = times_by_recursion(schedule, cost)
    assert {entry.action: (entry.start, entry.end) for entry in report.timeline} == wanted


@few
@given(cases())
def test_every_rank_is_busy_or_idle_all_the_time(case: Case) -> None:
    report = simulate(*case)
    for rank, idle in enumerate(report.idle):
        assert work(report, rank) + idle == report.makespan
        assert idle >= 0
    assert 0 <= report.bubble_fraction < 1
    assert 0 <= report.span_bubble <= max(report.idle) / report.makespan


@few
@given(cases())
def test_the_critical_path_fills_the_makespan(case: Case) -> None:
    schedule, cost = case
    report = simulate(schedule, cost)
    hops = cost.of_stages("transfer", schedule.num_stages)
    path = report.critical_path
    assert path[0].start == 0
    assert path[-1].end == report.makespan
    for before, after in pairwise(path):
        hop = 0 if before.rank == after.rank else hops[before.action.stage]
        gap = after.start - before.end
        # In a lowered schedule a message may have waited for another one: several hops in a row.
        assert gap == hop or (isinstance(schedule, LoweredSchedule) and gap > hop)
    assert sum(entry.duration for entry in path) <= report.makespan
    assert report.makespan >= max(work(report, rank) for rank in range(schedule.ranks))


@few
@given(cases())
def test_without_hops_the_critical_path_has_no_gap(case: Case) -> None:
    schedule, cost = case
    instant = Cost(cost.forward, cost.backward_input, cost.backward_weight)
    path = simulate(schedule, instant).critical_path
    assert all(before.end == after.start for before, after in pairwise(path))


@few
@given(cases(), st.data(), DURATIONS)
def test_what_is_on_the_critical_path_stretches_the_makespan(
    case: Case, data: st.DataObject, more: float
) -> None:
    report = simulate(*case)
    longer = data.draw(st.sampled_from(report.critical_path))
    durations = {e.action: e.duration for e in report.timeline if e.is_compute}
    durations[longer.action] += more
    stretched = replay(case[0], durations, transfer=case[1].transfer)
    assert stretched.makespan == report.makespan + more


@few
@given(cases(), DURATIONS)
def test_more_latency_never_shortens(case: Case, more: float) -> None:
    schedule, cost = case
    hops = [hop + more for hop in cost.of_stages("transfer", schedule.num_stages)]
    slower = Cost(
        cost.forward, cost.backward_input, cost.backward_weight, hops, backward=cost.backward
    )
    before, after = simulate(schedule, cost).timeline, simulate(schedule, slower).timeline
    assert all(b.end <= a.end for b, a in zip(before, after, strict=True))


@few
@given(cases())
def test_replaying_the_simulated_durations_gives_the_same_report(case: Case) -> None:
    schedule, cost = case
    report = simulate(schedule, cost)
    durations = {e.action: e.duration for e in report.timeline if e.is_compute}
    assert replay(schedule, durations, transfer=cost.transfer) == report


@few
@given(st.data())
def test_lowering_never_makes_a_schedule_faster(data: st.DataObject) -> None:
    schedule = data.draw(schedules())
    cost = data.draw(costs(schedule.num_stages))
    ideal, real = simulate(schedule, cost), simulate(lower(schedule), cost)
    assert real.makespan >= ideal.makespan
    assert real.peak_in_flight == ideal.peak_in_flight


@few
@given(cases())
def test_no_rank_runs_two_things_at_once(case: Case) -> None:
    free: dict[int, TimelineEntry] = {}
    for entry in simulate(*case).timeline:
        assert 0 <= entry.start <= entry.end
        assert entry.rank not in free or free[entry.rank].end <= entry.start
        free[entry.rank] = entry


@few
@given(schedules(), st.integers(0, 4))
def test_peaks_lie_between_the_stages_and_all_pairs(schedule: Schedule, quarters: int) -> None:
    report = simulate(schedule, Cost(1, 1, 1, weight_share=quarters / 4))
    for row, peak, activation in zip(
        schedule.actions, report.peak_in_flight, report.peak_activation, strict=True
    ):
        assert 1 <= activation <= peak <= sum(action.kind is F for action in row)
