"""Where transfers, exchanges and reductions are placed."""

from __future__ import annotations

import gc
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppframe.errors import DependencyViolation, IncompleteSchedule
from ppframe.schedule import (
    ActionKind,
    Compute,
    Exchange,
    LoweredSchedule,
    Overlap,
    Placement,
    Reduce,
    Schedule,
    Transfer,
    build_schedule,
    forward_only,
    lower,
    verify,
)
from ppframe.schedule.action import parts
from ppframe.schedule.lowering.reductions import place_reductions
from tests.schedule.drawings import compute
from tests.strategies import placements, quick, schedules


def lists(schedule: LoweredSchedule) -> list[str]:
    return [" ".join(map(str, row)) for row in schedule.actions]


def test_a_send_follows_its_producer_and_its_receive_stands_on_the_peer() -> None:
    assert lists(lower(compute("0F0 0F1 0BW0 0BW1", "1F0 1BW0 1F1 1BW1"))) == [
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0BW0 0RECV_B1 0BW1",
        "1RECV_F0 1F0 1RECV_F1 1BW0 1SEND_B0 1F1 1BW1 1SEND_B1",
    ]


def test_a_receive_stands_on_the_list_when_its_send_is_placed_not_just_before_its_use() -> None:
    """Rank 1 is given F1 while it still runs BW0; were it to ask for it after it sent the gradient
    of BW0, both would send first."""
    lowered = lower(build_schedule("1f1b", ranks=2, microbatches=4))
    row = [str(action) for action in lowered.actions[1]]
    assert row.index("1RECV_F1") < row.index("1BW0") < row.index("1F1")
    verify(lowered)


def test_the_turn_of_a_v_carries_no_transfers() -> None:
    v = compute("0F0 3F0 3BW0 0BW0", "1F0 2F0 2BW0 1BW0", owners=(0, 1, 1, 0))
    assert lists(lower(v)) == [
        "0F0 0SEND_F0 3RECV_F0 3F0 3BW0 3SEND_B0 0RECV_B0 0BW0",
        "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2BW0 1BW0 1SEND_B0",
    ]


def test_one_rank_has_nothing_to_send() -> None:
    schedule = build_schedule("dora-dfs", ranks=1, microbatches=3)
    assert lower(schedule).actions == schedule.actions


def test_b_sends_the_gradient_on_and_w_nothing() -> None:
    assert lists(lower(compute("0F0 0B0 0W0", "1F0 1B0 1W0"))) == [
        "0F0 0SEND_F0 0RECV_B0 0B0 0W0",
        "1RECV_F0 1F0 1B0 1SEND_B0 1W0",
    ]


def test_both_of_a_pair_are_sent_on() -> None:
    middle = compute("0F0 0F1 0BW0 0BW1", "1F0 (1F1;1BW0) 1BW1", "2F0 2BW0 2F1 2BW1")
    row = lists(lower(middle))[1]
    assert "(1F1;1BW0) 1SEND_F1 1SEND_B0" in row
    verify(lower(middle))


@quick
@given(schedules(), st.booleans(), st.booleans())
def test_every_lowered_form_is_legal_and_keeps_the_order(
    schedule: Schedule, reduce: bool, group: bool
) -> None:
    lowered = lower(schedule, reduce=reduce, group=group)
    verify(lowered)
    for before, after in zip(schedule.actions, lowered.actions, strict=True):
        assert [a for a in after if isinstance(a, Compute | Overlap)] == list(before)
    assert (lowered.placement, lowered.num_microbatches, lowered.name) == (
        schedule.placement, schedule.num_microbatches, schedule.name,
    )  # fmt: skip


@quick
@given(schedules(max_ranks=4, max_microbatches=8))
def test_every_hop_has_one_message_each_way(schedule: Schedule) -> None:
    lowered = lower(schedule)
    ends = [a for row in lowered.actions for a in row if isinstance(a, Transfer)]
    owners = schedule.placement
    hops = sum(owners[s] != owners[s + 1] for s in range(schedule.num_stages - 1))
    assert len(ends) == len(set(ends)) == 4 * hops * schedule.num_microbatches


@quick
@given(placements(), st.integers(1, 9))
def test_forward_only_schedules_are_lowered_too(placement: Placement, microbatches: int) -> None:
    lowered = lower(forward_only(placement, microbatches), reduce=True)
    verify(lowered)
    kinds = Counter(action.kind.value for row in lowered.actions for action in row)
    hops = sum(placement[s] != placement[s + 1] for s in range(len(placement) - 1))
    assert kinds["F"] == len(placement) * microbatches
    assert kinds["SEND_F"] == kinds["RECV_F"] == hops * microbatches
    assert set(kinds) <= {"F", "SEND_F", "RECV_F"}


def test_what_is_not_legal_is_not_lowered() -> None:
    with pytest.raises(IncompleteSchedule):
        lower(compute("0F0"))
    with pytest.raises(DependencyViolation):
        lower(compute("0BW0 0F0"))


def test_a_reduction_follows_the_last_backward_of_its_stage_and_what_that_sends() -> None:
    lowered = lower(build_schedule("dora-dfs", ranks=2, microbatches=2), reduce=True)
    assert lists(lowered)[0].endswith("2BW1 0RECV_B0 2SEND_B1 2REDUCE 0BW0 0RECV_B1 0BW1 0REDUCE")
    for row in lowered.actions:
        for step, action in enumerate(row):
            if isinstance(action, Reduce):
                later = [p for other in row[step:] for p in parts(other) if isinstance(p, Compute)]
                assert action.stage not in {part.stage for part in later}


def test_a_reduction_waits_for_weight_gradients_that_come_late() -> None:
    lowered = lower(compute("0F0 0B0 0F1 0BW1 0W0"), reduce=True)
    assert lists(lowered) == ["0F0 0B0 0F1 0BW1 0W0 0REDUCE"]


def test_every_stage_is_reduced_once() -> None:
    lowered = lower(build_schedule("looped-bfs", ranks=3, microbatches=4), reduce=True)
    reduced = [a.stage for row in lowered.actions for a in row if isinstance(a, Reduce)]
    assert sorted(reduced) == list(range(6))
    assert place_reductions(lower(forward_only(lowered.placement, 2))).actions == (
        lower(forward_only(lowered.placement, 2)).actions
    )


def exchanges(lowered: LoweredSchedule) -> list[Exchange]:
    return [a for row in lowered.actions for a in row if isinstance(a, Exchange)]


def test_neighbours_exchange_where_both_have_the_two_side_by_side() -> None:
    """In the steady state of 1F1B a forward and a backward of neighbours end together."""
    lowered = lower(build_schedule("1f1b", ranks=2, microbatches=4), group=True)
    assert lists(lowered) == [
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0BW0 0F2 0SEND_F2_0RECV_B1 0BW1 0F3 0SEND_F3_0RECV_B2 "
        "0BW2 0RECV_B3 0BW3",
        "1RECV_F0 1F0 1RECV_F1 1BW0 1SEND_B0 1F1 1BW1 1SEND_B1_1RECV_F2 1F2 1BW2 1SEND_B2_1RECV_F3 "
        "1F3 1BW3 1SEND_B3",
    ]


@quick
@given(schedules())
def test_every_exchange_has_its_mirror_and_nothing_is_lost(schedule: Schedule) -> None:
    plain, grouped = lower(schedule), lower(schedule, group=True)
    found = exchanges(grouped)
    assert {exchange.mirror for exchange in found} == set(found)
    apart = [[p for action in row for p in parts(action)] for row in grouped.actions]
    assert [sorted(map(str, row)) for row in apart] == [
        sorted(str(part) for action in row for part in parts(action)) for row in plain.actions
    ]


def test_gpipe_has_nothing_to_exchange() -> None:
    assert not exchanges(lower(build_schedule("gpipe", ranks=3, microbatches=5), group=True))


def test_a_send_to_one_neighbour_and_a_receive_from_another_are_no_exchange() -> None:
    """In the middle of a V: stage 1 receives from rank 0, stage 4 sends to rank 2."""
    v = compute(
        "0F0 5F0 5BW0 0F1 0BW0 5F1 5BW1 0BW1",
        "1F0 4F0 4BW0 1F1 1BW0 4F1 4BW1 1BW1",
        "2F0 3F0 3BW0 2BW0 2F1 3F1 3BW1 2BW1",
        owners=(0, 1, 2, 2, 1, 0),
    )
    grouped = lower(v, group=True)
    verify(grouped)
    assert "1RECV_F1 4SEND_B0" in lists(grouped)[1]


def test_the_cycle_collector_is_left_as_it_was() -> None:
    schedule = compute("0F0 0BW0")
    gc.disable()
    try:
        lower(schedule)
        assert not gc.isenabled()
    finally:
        gc.enable()
    lower(schedule)
    assert gc.isenabled()


def test_a_rank_gives_away_what_it_made_before_it_waits_for_its_neighbour() -> None:
    lowered = lower(build_schedule("gpipe", ranks=4, microbatches=3))
    for rank, row in enumerate(lowered.actions):
        for action, following in pairwise(row):
            if action.kind is ActionKind.F and rank < 3:
                assert str(following) == f"{rank}SEND_F{action.microbatch}"
            if action.kind is ActionKind.BW and rank > 0:
                assert str(following) == f"{rank}SEND_B{action.microbatch}"
