"""Two chains through the ranks: which microbatch runs where, and what follows from it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppframe.errors import (
    DependencyViolation,
    IncompleteSchedule,
    ScheduleError,
    ScheduleSyntaxError,
)
from ppframe.schedule import (
    LoweredSchedule,
    Placement,
    Schedule,
    execution_order,
    forward_only,
    lower,
    verify,
)
from ppframe.schedule.ir import peer_of
from ppframe.schedule.walk import ComputeWalk
from ppframe.simulator import Cost, simulate
from tests.schedule.drawings import assert_same_grid, compute
from tests.strategies import quick

PAIR = ("0F0 1F1 1BW1 0BW0", "0F1 1F0 1BW0 0BW1")
TWO = compute(*PAIR, chains=(0, 1))
TEXT = "0F0,1F1,1BW1,0BW0\n0F1,1F0,1BW0,0BW1\n"


@pytest.mark.parametrize("schedule", [TWO, lower(TWO)], ids=["compute", "lowered"])
def test_each_microbatch_has_its_ranks(schedule: Schedule | LoweredSchedule) -> None:
    assert [schedule.chain(m) for m in range(2)] == [0, 1]
    assert [schedule.owners(m) for m in range(2)] == [(0, 1), (1, 0)]
    assert [[schedule.rank_of(stage, m) for stage in range(2)] for m in range(2)] == [
        [0, 1], [1, 0],
    ]  # fmt: skip
    assert tuple(schedule.placement) == (0, 1)
    verify(schedule)


def test_chain_one_lies_on_the_mirror_image_of_any_placement() -> None:
    schedule = Schedule(((),) * 4, Placement((1, 0, 2, 3)), chains=())
    assert schedule.placement.mirrored == (2, 3, 1, 0)


def test_zeros_at_the_end_and_chains_without_a_microbatch_do_not_count() -> None:
    one = compute("0F0 0BW0 0F1 0BW1", "1F0 1BW0 1F1 1BW1", chains=(0, 0))
    assert one == compute("0F0 0BW0 0F1 0BW1", "1F0 1BW0 1F1 1BW1")
    assert replace(TWO, chains=(0, 1, 1)) == TWO
    first = compute("0F1 1F0 1BW0 0BW1", "0F0 1F1 1BW1 0BW0", chains=(1, 0))
    assert (first.chains, first.chain(1)) == ((1,), 0)
    verify(first)


def test_one_rank_has_one_chain() -> None:
    assert compute("0F0 0BW0", chains=(1,)).chains == ()


@pytest.mark.parametrize("chain", [2, -1, "x"])
def test_a_chain_is_0_or_1(chain: int) -> None:
    with pytest.raises(ScheduleError, match="chain of a microbatch must be 0 or 1"):
        replace(TWO, chains=(0, chain))


def test_two_chains_have_one_stage_on_each_rank() -> None:
    with pytest.raises(ScheduleError, match="one stage for each rank, but has 4 stages on 2 ranks"):
        compute("0F0 2F0", "1F0 3F0", owners=(0, 1, 0, 1), chains=(1,))


def test_it_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(TWO)) == TWO
    assert pickle.loads(pickle.dumps(lower(TWO))).chains == (0, 1)


def test_a_microbatch_on_the_ranks_of_the_other_chain_is_named() -> None:
    with pytest.raises(IncompleteSchedule, match="0 on chain 0, 1 on chain 1") as caught:
        verify(compute(*PAIR, chains=(1, 1)))
    assert (caught.value.rank, caught.value.step, caught.value.action) == (0, 0, "0F0")


# Lowering


def test_messages_of_both_chains_go_between_the_same_ranks() -> None:
    lowered = lower(TWO, reduce=True)
    assert [" ".join(map(str, row)) for row in lowered.actions] == [
        "0F0 0SEND_F0 1RECV_F1 1F1 1BW1 1SEND_B1 1REDUCE 0RECV_B0 0BW0 0REDUCE",
        "0F1 1RECV_F0 0SEND_F1 1F0 1BW0 0RECV_B1 1SEND_B0 1REDUCE 0BW1 0REDUCE",
    ]
    ends = {str(a): peer_of(lowered, a) for a in lowered.actions[0] if "RECV" in str(a)}  # type: ignore[arg-type]
    assert ends == {"1RECV_F1": 1, "0RECV_B0": 1}
    verify(lowered)


def test_every_copy_of_a_stage_is_reduced_after_its_own_last_backward() -> None:
    lowered = lower(TWO, reduce=True)
    row = lowered.actions[1]
    missing = replace(lowered, actions=(lowered.actions[0], row[:-1]))
    with pytest.raises(IncompleteSchedule, match="must be reduced where one is") as caught:
        verify(missing)
    assert (caught.value.rank, caught.value.action) == (1, "0REDUCE")
    early = (*row[:4], row[-1], *row[4:-1])
    with pytest.raises(DependencyViolation, match="0REDUCE must come after 0BW1"):
        verify(replace(lowered, actions=(lowered.actions[0], early)))


def test_a_stage_in_the_middle_has_one_copy() -> None:
    odd = compute(
        "0F0 2F1 2BW1 0BW0", "1F0 1F1 1BW0 1BW1", "0F1 2F0 2BW0 0BW1", chains=(0, 1)
    )  # fmt: skip
    lowered = lower(odd, reduce=True)
    verify(lowered)
    assert [str(action) for action in lowered.actions[1]].count("1REDUCE") == 1
    assert Schedule.from_text(odd.to_text()) == odd


def test_the_walk_runs_the_forwards_of_a_stage_in_the_order_of_microbatches() -> None:
    """Rank 0 comes first in every turn, so it would run 1F1 before rank 1 runs 1F0."""
    schedule = forward_only(TWO, 6)
    lowered = lower(schedule)
    walked = [str(lowered.actions[rank][step]) for rank, step in execution_order(lowered)]
    for stage in range(2):
        forwards = [text for text in walked if text.startswith(f"{stage}F")]
        assert forwards == [f"{stage}F{m}" for m in range(6)]


def test_lists_in_another_order_are_walked_as_they_are() -> None:
    swapped = compute("0F2 1F1 0F0 1BW1 0BW2 0BW0", "0F1 1F2 1F0 1BW2 1BW0 0BW1", chains=(0, 1, 0))
    lowered = lower(swapped)
    verify(lowered)
    assert len(execution_order(lowered)) == sum(map(len, lowered.actions))


def test_simulation_asks_where_a_microbatch_runs() -> None:
    """Each rank: F of its own end, F of the other, then both backwards; hops cost 10."""
    report = simulate(TWO, Cost(1, 1, 1, transfer=10))
    assert report.makespan == 1 + 10 + 1 + 2 + 10 + 2
    assert report.peak_in_flight == (2, 2)
    assert [str(entry.action) for entry in report.critical_path][-1] in ("0BW0", "0BW1")


# Text


def test_chains_are_seen_from_who_computes_which_microbatch() -> None:
    read = Schedule.from_text(TEXT)
    assert (read, read.chains, tuple(read.placement)) == (TWO, (0, 1), (0, 1))
    assert LoweredSchedule.from_text(lower(TWO).to_text()) == lower(TWO)


def test_chain_0_is_the_one_that_begins_on_the_lower_rank() -> None:
    read = Schedule.from_text("0F1,1F0,1BW0,0BW1\n0F0,1F1,1BW1,0BW0\n")
    assert (tuple(read.placement), read.chains) == ((0, 1), (1,))
    assert Schedule.from_text(compute(*PAIR, owners=(1, 0), chains=(1,)).to_text()) == TWO


def test_a_microbatch_alone_on_the_way_back_is_one_chain() -> None:
    read = Schedule.from_text("1F0,1BW0\n0F0,0BW0\n")
    assert (tuple(read.placement), read.chains) == ((1, 0), ())


@pytest.mark.parametrize(
    ("text", "line", "column", "action", "phrase"),
    [
        # Most of microbatch 2 runs as microbatch 0 does, but 1BW2 stands on rank 0.
        ("0F0,1F1,1BW1,0BW0,0F2,1BW2,0BW2\n0F1,1F0,1BW0,0BW1,1F2", 1, 23, "1BW2", "microbatch 2"),
        # Half of it here, half there: chain 0.
        ("0F0,1F1,1BW1,0BW0,0F2,1F2\n0F1,1F0,1BW0,0BW1", 1, 23, "1F2", "lies on rank 1"),
        ("0F0,1F1,1BW1,0BW0,0F2,0BW2\n0F1,1F0,1BW0,0BW1,2F2", 2, 19, "2F2", "without gaps"),
    ],
)
def test_a_microbatch_on_ranks_of_neither_chain_is_named(
    text: str, line: int, column: int, action: str, phrase: str
) -> None:
    with pytest.raises(ScheduleSyntaxError, match=phrase) as caught:
        Schedule.from_text(text)
    assert (caught.value.line, caught.value.column, caught.value.action) == (line, column, action)


def test_a_stray_number_makes_no_table_of_its_size() -> None:
    read = Schedule.from_text(TEXT.rstrip("\n") + ",0F999999999\n")
    assert read.chains == (0, 1)
    with pytest.raises(IncompleteSchedule, match="999999999"):
        verify(read)


# Forward only


@quick
@given(st.integers(1, 5), st.integers(1, 12))
def test_forwards_alternate_between_the_chains(half: int, microbatches: int) -> None:
    ranks = 2 * half
    rows = tuple((f"{r}F0", f"{ranks - 1 - r}F1") for r in range(ranks))
    like = compute(*map(" ".join, rows), chains=(0, 1), forward_only=True)
    schedule = forward_only(like, microbatches)
    verify(schedule)
    verify(lower(schedule))
    assert [schedule.chain(m) for m in range(microbatches)] == [m % 2 for m in range(microbatches)]
    end = max(max(ends, default=0) for ends in ComputeWalk(schedule).ends)
    last_pair = (microbatches - 1) // 2
    assert end == 2 * last_pair + ranks


def test_drawing_of_forwards_on_two_chains() -> None:
    assert_same_grid(
        forward_only(TWO, 4),
        """
        0F0  0F1
        1F1  1F0
        0F2  0F3
        1F3  1F2
        """,
    )
