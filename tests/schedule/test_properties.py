"""What holds for every schedule of every registered generator, whatever P, V and M."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppframe.schedule import (
    ActionKind,
    Compute,
    LoweredSchedule,
    Placement,
    Shape,
    execution_order,
    lower,
    nearest_microbatches,
    schedule_facts,
    verify,
)
from ppframe.schedule.action import parts
from ppframe.simulator import Cost, simulate
from tests.schedule.oracle import runs_to_its_end
from tests.strategies import GENERATORS, build, quick, shapes

UNIT = Cost(forward=1, backward_input=1, backward_weight=1)

every_generator = pytest.mark.parametrize("name", GENERATORS)


@every_generator
@quick
@given(data=st.data())
def test_it_is_legal_before_and_after_lowering(name: str, data: st.DataObject) -> None:
    schedule = build(name, data.draw(shapes(name)))
    verify(schedule)
    verify(lower(schedule))
    verify(lower(schedule, group=True, reduce=True))


@every_generator
@quick
@given(data=st.data())
def test_a_naive_run_of_the_lists_comes_to_the_end(name: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(name, max_ranks=4, max_microbatches=6))
    assert runs_to_its_end(build(name, shape))
    assert runs_to_its_end(lower(build(name, shape)))


@every_generator
@quick
@given(data=st.data())
def test_it_has_the_shape_it_was_asked_for(name: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(name))
    schedule = build(name, shape)
    assert (schedule.ranks, schedule.chunks_per_rank, schedule.num_microbatches) == shape
    assert schedule.num_stages == shape.ranks * shape.chunks_per_rank
    assert schedule.name == name
    facts = schedule_facts(name)
    assert facts is not None
    make = Placement.v if facts.placement in ("v", "wave") else Placement.loop
    assert schedule.placement == make(shape.ranks, shape.chunks_per_rank)


@every_generator
@quick
@given(data=st.data())
def test_each_microbatch_runs_once_forward_and_once_backward(
    name: str, data: st.DataObject
) -> None:
    shape = data.draw(shapes(name))
    schedule = build(name, shape)
    kinds: dict[tuple[int, int], list[ActionKind]] = {}
    for rank, row in enumerate(schedule.actions):
        for action in chain.from_iterable(map(parts, row)):
            assert isinstance(action, Compute)
            assert schedule.rank_of(action.stage, action.microbatch) == rank
            kinds.setdefault((action.stage, action.microbatch), []).append(action.kind)
    assert len(kinds) == schedule.num_stages * shape.microbatches
    whole = [ActionKind.F, ActionKind.BW]
    split = [ActionKind.F, ActionKind.B, ActionKind.W]
    assert all(found in (whole, split) for found in kinds.values())


@every_generator
@quick
@given(data=st.data())
def test_declared_facts_are_what_the_simulator_finds(name: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(name, max_ranks=8, max_chunks=4, max_microbatches=20))
    facts = schedule_facts(name)
    assert facts is not None
    report = simulate(build(name, shape), UNIT)
    makespan, peak = facts.makespan(shape), facts.peak_in_flight(shape)
    assert makespan in (None, report.makespan)
    assert peak in (None, report.peak_in_flight)


@every_generator
def test_facts_are_declared_where_the_papers_give_them(name: str) -> None:
    facts = schedule_facts(name)
    assert facts is not None
    whole = [shape for shape in taken(name) if shape.microbatches % shape.ranks == 0]
    assert any(facts.makespan(shape) is not None for shape in whole)
    assert any(facts.peak_in_flight(shape) is not None for shape in whole)
    assert facts.reference
    assert facts.summary


def taken(name: str) -> list[Shape]:
    """Shapes of four ranks that a generator takes."""
    facts = schedule_facts(name)
    assert facts is not None
    candidates = (Shape(4, facts.chunks_per_rank, microbatches) for microbatches in range(4, 40))
    return [shape for shape in candidates if facts.takes_microbatches(shape)]


@every_generator
@quick
@given(data=st.data())
def test_communication_without_latency_costs_nothing(name: str, data: st.DataObject) -> None:
    """Transfers are placed so that no rank waits in a rendezvous for one that computes."""
    schedule = build(name, data.draw(shapes(name)))
    report, lowered = simulate(schedule, UNIT), simulate(lower(schedule), UNIT)
    assert lowered.makespan == report.makespan
    assert lowered.peak_in_flight == report.peak_in_flight


@every_generator
@quick
@given(data=st.data())
def test_one_controller_can_walk_the_proven_order(name: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(name, max_ranks=4, max_microbatches=8))
    lowered = lower(build(name, shape), reduce=True, group=data.draw(st.booleans()))
    seen = [0] * lowered.ranks
    done: list[str] = []
    for rank, step in execution_order(lowered):
        assert step == seen[rank]
        seen[rank] += 1
        done.append(str(lowered.actions[rank][step]))
    assert seen == [len(row) for row in lowered.actions]
    assert_sends_stand_before_their_receives(lowered, done)


def assert_sends_stand_before_their_receives(lowered: LoweredSchedule, done: list[str]) -> None:
    for index, action in enumerate(done):
        if "SEND_F" in action and "RECV" not in action:
            stage, microbatch = action.split("SEND_F")
            assert done[index + 1] == f"{int(stage) + 1}RECV_F{microbatch}"
        elif "SEND_B" in action and "RECV" not in action:
            stage, microbatch = action.split("SEND_B")
            assert done[index + 1] == f"{int(stage) - 1}RECV_B{microbatch}"


@every_generator
@quick
@given(data=st.data())
def test_the_nearest_number_of_microbatches_works(name: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(name))
    wanted = data.draw(st.integers(1, 40))
    nearest = nearest_microbatches(name, shape.ranks, wanted, shape.chunks_per_rank)
    verify(build(name, shape._replace(microbatches=nearest)))
