"""Makespans and peaks that papers state in closed form, over drawn P, V, M and durations.

P ranks, V chunks of a rank, M microbatches; F, B, W durations per rank and microbatch; c a hop.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ppframe.schedule import Compute, Overlap, Placement, build_schedule, forward_only
from ppframe.simulator import Cost, SimulationReport, replay, simulate
from tests.simulator.shapes import BW, DURATIONS, B, F, W

RANKS = st.integers(2, 6)
ROUNDS = st.integers(1, 4)
CHUNKS = st.integers(1, 4)

few = settings(max_examples=20)  # each simulates a schedule of hundreds of actions


def run(name: str, ranks: int, microbatches: int, cost: Cost, chunks: int = 1) -> SimulationReport:
    return simulate(build_schedule(name, ranks, microbatches, chunks_per_rank=chunks), cost)


@given(RANKS, st.integers(1, 12), DURATIONS, DURATIONS, DURATIONS)
def test_gpipe_fills_and_drains_once(p: int, m: int, f: float, b: float, w: float) -> None:
    report = run("gpipe", p, m, Cost(f, b, w, transfer=f))
    assert report.makespan == (m + p - 1) * (f + b + w) + 2 * (p - 1) * f
    assert report.peak_in_flight == (m,) * p


@given(RANKS, st.integers(1, 12), DURATIONS, DURATIONS, DURATIONS)
def test_1f1b_has_the_bubble_of_gpipe(p: int, m: int, f: float, b: float, w: float) -> None:
    report = run("1f1b", p, m, Cost(f, b, w))
    assert report.makespan == (m + p - 1) * (f + b + w)
    assert report.idle == ((p - 1) * (f + b + w),) * p
    assert report.bubble_fraction == pytest.approx((p - 1) / (m + p - 1))
    assert report.peak_in_flight == tuple(min(m, p - r) for r in range(p))


@given(RANKS, ROUNDS, DURATIONS, DURATIONS, DURATIONS)
def test_1f1b_pays_latency_once_per_round(
    p: int, rounds: int, f: float, b: float, w: float
) -> None:
    m, c = p * rounds, f / 16
    expected = (m + p - 1) * (f + b + w) + 2 * (p - 1) * (m / p + 1) * c - 2 * c
    assert run("1f1b", p, m, Cost(f, b, w, transfer=c)).makespan == expected


@pytest.mark.parametrize("name", ["interleaved-1f1b", "dora-dfs"])
@given(p=RANKS, rounds=ROUNDS, v=CHUNKS, times=st.tuples(DURATIONS, DURATIONS, DURATIONS))
def test_interleaving_divides_the_bubble_by_the_chunks(
    name: str, p: int, rounds: int, v: int, times: tuple[float, float, float]
) -> None:
    m = p * rounds
    report = run(name, p, m, Cost(*times), v)
    assert report.makespan == m * v * sum(times) + (p - 1) * sum(times)
    most = m * v  # a rank can't hold more than all
    wanted = tuple(min(most, (v - 1) * p + 2 * (p - 1 - r) + 1) for r in range(p))
    assert report.peak_in_flight == wanted


@given(RANKS, ROUNDS, CHUNKS, DURATIONS, DURATIONS, DURATIONS)
def test_looped_bfs_has_the_bubble_of_interleaving_and_holds_all(
    p: int, rounds: int, v: int, f: float, b: float, w: float
) -> None:
    m = p * rounds
    report = run("looped-bfs", p, m, Cost(f, b, w), v)
    assert report.makespan == m * v * (f + b + w) + (p - 1) * (f + b + w)
    assert report.peak_in_flight == (m * v,) * p


@given(RANKS, st.integers(1, 4), st.integers(2, 3), DURATIONS)
def test_dora_fills_its_bubble_with_weight_gradients(p: int, rounds: int, v: int, t: float) -> None:
    m = p * rounds
    report = run("dora", p, m, Cost(t, t, t), v)
    bubble = (p - 1) * (t if m > p else 2 * t)
    assert report.makespan == m * v * 3 * t + bubble


@given(st.integers(2, 4), st.integers(3, 4), st.integers(0, 4))
def test_dora_keeps_two_weight_shares_more_on_each_next_rank(
    p: int, rounds: int, quarters: int
) -> None:
    share, v = quarters / 4, 2
    report = run("dora", p, p * rounds, Cost(1, 1, 1, weight_share=share), v)
    wanted = tuple((v - 1) * p + 2 * (p - 1 - r) + 1 + 2 * r * share for r in range(p))
    assert report.peak_activation == wanted


@given(RANKS, st.integers(1, 12), DURATIONS, DURATIONS, DURATIONS)
def test_eager_1f1b_pays_latency_once(p: int, m: int, f: float, b: float, w: float) -> None:
    c = f / 16
    report = run("eager-1f1b", p, m, Cost(f, b, w, transfer=c))
    assert report.makespan == (m + p - 1) * (f + b + w) + 2 * (p - 1) * c
    assert report.peak_in_flight == tuple(min(m, 2 * (p - 1 - r) + 1) for r in range(p))


@given(RANKS, st.integers(0, 4), DURATIONS, DURATIONS, DURATIONS)
def test_zb_h1_pays_for_no_weight_gradient_in_its_bubble(
    p: int, more: int, f: float, b: float, w: float
) -> None:
    assume(w <= min(f, b))  # as it is for transformers; a longer W doesn't fit into the gaps
    m = 2 * p + more
    report = run("zb-h1", p, m, Cost(f, b, w, weight_share=0.25))
    assert report.makespan == m * (f + b + w) + (p - 1) * (f + b - w)
    assert report.peak_activation == tuple(p - r + 0.25 * r for r in range(p))


@given(RANKS, st.integers(0, 4), DURATIONS, DURATIONS, DURATIONS)
def test_zb_h1_pays_four_times_for_each_hop(
    p: int, more: int, f: float, b: float, w: float
) -> None:
    assume(w <= min(f, b))
    m, c = 2 * p + more, 1 / 64
    report = run("zb-h1", p, m, Cost(f, b, w, transfer=c))
    assert report.makespan == m * (f + b + w) + (p - 1) * (f + b - w + 4 * c)


@pytest.mark.parametrize("name", ["zb-h1", "interleaved-zb"])
@given(p=RANKS, m=st.integers(1, 6), times=st.tuples(DURATIONS, DURATIONS, DURATIONS))
def test_few_microbatches_take_the_way_there_and_back(
    name: str, p: int, m: int, times: tuple[float, float, float]
) -> None:
    """(M + P - 1) (F + B) + W, as the Zero Bubble paper has it for M ≤ P (its Table 12)."""
    f, b, w = times
    assume(m <= p and w <= min(f, b))
    report = run(name, p, m, Cost(f, b, w))
    assert report.makespan == (m + p - 1) * (f + b) + w


@given(RANKS, st.integers(0, 4), DURATIONS)
def test_zb_h2_leaves_no_idle_time_between_a_ranks_ends(p: int, more: int, t: float) -> None:
    report = run("zb-h2", p, 2 * p - 1 + more, Cost(t, t, t, weight_share=0.25))
    assert report.span_bubble == 0
    assert report.idle == ((p - 1) * t,) * p
    assert report.peak_activation == tuple(2 * (p - r) - 1 + 2 * r * 0.25 for r in range(p))


@few
@given(RANKS, st.integers(0, 4), DURATIONS, DURATIONS, DURATIONS, st.integers(0, 1))
def test_zb_h2_pays_twice_for_each_hop_by_its_longest_span(
    p: int, more: int, f: float, b: float, w: float, hop: int
) -> None:
    assume(w <= min(f, b))
    m, c = 2 * p + more, hop / 64
    report = run("zb-h2", p, m, Cost(f, b, w, transfer=c))
    longest = m * (f + b + w) + (p - 1) * (f + b - 2 * w + 2 * c)
    assert max(spans(report, p)) == longest
    assert report.makespan == max(longest, m * (f + b + w) + (p - 1) * (f + c))


def spans(report: SimulationReport, ranks: int) -> list[float]:
    """For each rank the time from its first start to its last end."""
    entries = [[e for e in report.timeline if e.rank == rank] for rank in range(ranks)]
    return [max(e.end for e in row) - min(e.start for e in row) for row in entries]


@few
@given(RANKS, ROUNDS, CHUNKS, DURATIONS, st.integers(0, 4))
def test_interleaved_zb_has_the_bubble_of_zb_h1_whatever_v(
    p: int, rounds: int, v: int, t: float, quarters: int
) -> None:
    share, m = quarters / 4, p * rounds
    report = run("interleaved-zb", p, m, Cost(t, t, t, weight_share=share), v)
    assert report.makespan == 3 * m * v * t + (p - 1) * t
    wanted = tuple((v - 1) * p + p - r + r * share for r in range(p))
    if m * v >= v * p + p:  # with fewer, rank r has held back fewer at its peak
        assert report.peak_activation == wanted


@few
@given(RANKS, ROUNDS, CHUNKS, DURATIONS, DURATIONS, DURATIONS)
def test_gis_interleaves_in_the_memory_of_1f1b(
    p: int, rounds: int, v: int, f: float, b: float, w: float
) -> None:
    """PipeOffload, Table 1: the whole model's activations, bubble (d - 1) (F + B)."""
    assume(w <= min(f, b))
    m = p * rounds
    report = run("gis", p, m, Cost(f, b, w), v)
    assert report.makespan == m * v * (f + b + w) + (p - 1) * (f + b)
    assert report.peak_in_flight[0] == v * p


@few
@given(st.integers(1, 4), ROUNDS, st.integers(2, 4), DURATIONS, DURATIONS, DURATIONS)
def test_gis_h_halves_the_memory(
    half: int, rounds: int, v: int, f: float, b: float, w: float
) -> None:
    """PipeOffload, Table 1: (v + 1) / 2 v of them, and a bubble of (v - 1) d / 2 (F + B - W) more.

    With d even, and F, B and W alike enough that no two are as long as less than the third.
    """
    assume(w <= min(f, b) and b <= f + w and f <= b + w)
    p, m = 2 * half, half * rounds
    report = run("gis-h", p, m, Cost(f, b, w), v)
    more = (v - 1) * half * (f + b - w)
    assert report.makespan == m * v * (f + b + w) + (p - 1) * (f + b) + more
    if rounds > 1:
        assert report.peak_in_flight[0] * 2 * v == (v + 1) * v * p


@few
@given(RANKS, st.integers(0, 6), DURATIONS)
def test_zbv_is_never_idle_between_a_ranks_ends(p: int, more: int, t: float) -> None:
    """In the memory of 1F1B, the same on all ranks: P microbatches, each on half of it twice."""
    report = run("zbv", p, 2 * p - 1 + more, Cost(t, t, t, weight_share=0), 2)
    assert report.span_bubble == 0
    assert report.peak_activation == (2 * p,) * p


@few
@given(RANKS, st.integers(0, 6), st.integers(8, 12))
def test_dualpipe_v_has_the_bubble_of_its_table(p: int, more: int, quarters: int) -> None:
    """(P - 1) (FB + BW - 3 W) on the rank that idles most, and 2 P + 1 chunks on every one."""
    schedule = build_schedule("dualpipe-v", p, 2 * p + more)
    pair = quarters / 4  # from the longer of its two parts to their sum
    times = {F: 1.0, B: 1.0, W: 1.0, BW: 2.0}
    durations = [
        [times.get(action.kind, pair) for action in row if isinstance(action, Compute | Overlap)]
        for row in schedule.actions
    ]
    report = replay(schedule, durations)
    assert max(report.idle) == (p - 1) * (pair + 2 - 3)
    assert report.peak_in_flight == (2 * p + 1,) * p


@few
@given(RANKS, st.integers(0, 6), DURATIONS)
def test_stp_pays_for_no_weight_gradient_in_its_bubble(p: int, more: int, t: float) -> None:
    """(P - 1) (F + B - W); 3 P chunks and one, for a pair's forward starts before its backward."""
    report = run("stp", p, 3 * p - 1 + more, Cost(t, t, t, weight_share=0), 2)
    assert report.makespan == 6 * (3 * p - 1 + more) * t + (p - 1) * t
    assert max(report.peak_activation) == 3 * p + 1


@few
@given(RANKS, ROUNDS, st.integers(1, 3), DURATIONS)
def test_hanayo_fills_and_drains_once_where_a_backward_takes_as_long_as_a_forward(
    p: int, rounds: int, waves: int, t: float
) -> None:
    """Chimera's slots without a gap: P of its bubbles less one, in a chain of V P stages."""
    m, v = p * rounds, 2 * waves
    report = run("hanayo", p, m, Cost(t, t / 2, t / 2), v)
    assert report.makespan == 2 * m * v * t + 2 * (p - 1) * t
    assert max(report.peak_in_flight) <= v * p


@pytest.mark.parametrize(
    ("ranks", "waves", "bubble"),
    [(4, 1, 12 / 36), (4, 2, 12 / 60), (4, 4, 12 / 108), (8, 1, 28 / 76), (8, 2, 28 / 124)],
)
def test_hanayo_idles_less_with_every_wave(ranks: int, waves: int, bubble: float) -> None:
    """BW = 2 F, M = P: rank 0 waits P - 1 forwards at the turn, 3 (P - 1) at the end."""
    report = run("hanayo", ranks, ranks, Cost(1, 1, 1), 2 * waves)
    assert report.bubble_fraction == pytest.approx(bubble)


@given(RANKS, st.integers(1, 12), DURATIONS, DURATIONS)
def test_forwards_alone_fill_once(p: int, m: int, f: float, c: float) -> None:
    schedule = forward_only(Placement.loop(p), m)
    report = simulate(schedule, Cost(f, 1, 1, transfer=c))
    assert report.makespan == (m + p - 1) * f + (p - 1) * c
    assert report.peak_in_flight == (1,) * p
