"""Makespans and peaks that papers state in closed form, over drawn P, V, M and durations.

P ranks, V chunks of a rank, M microbatches; F, B, W durations per rank and microbatch; c a hop.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ppframe.schedule import Placement, build_schedule, forward_only
from ppframe.simulator import Cost, SimulationReport, simulate
from tests.simulator.shapes import DURATIONS, zero_bubble

RANKS = st.integers(2, 6)
ROUNDS = st.integers(1, 4)
CHUNKS = st.integers(1, 4)


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


@given(RANKS, st.integers(0, 4), DURATIONS, DURATIONS, DURATIONS)
def test_zb_h1_pays_for_no_weight_gradient_in_its_bubble(
    p: int, more: int, f: float, b: float, w: float
) -> None:
    assume(w <= min(f, b))  # as it is for transformers; a longer W doesn't fit into the gaps
    m = 2 * p + more
    report = simulate(zero_bubble(p, m, warmups=1), Cost(f, b, w, weight_share=0.25))
    assert report.makespan == m * (f + b + w) + (p - 1) * (f + b - w)
    assert report.peak_activation == tuple(p - r + 0.25 * r for r in range(p))


@given(RANKS, st.integers(0, 4), DURATIONS)
def test_zb_h2_leaves_no_idle_time_between_a_ranks_ends(p: int, more: int, t: float) -> None:
    report = simulate(zero_bubble(p, 2 * p + more, warmups=2), Cost(t, t, t, weight_share=0.25))
    assert report.span_bubble == 0
    assert report.idle == ((p - 1) * t,) * p
    assert report.peak_activation == tuple(2 * (p - r) - 1 + 2 * r * 0.25 for r in range(p))


@given(RANKS, st.integers(1, 12), DURATIONS, DURATIONS)
def test_forwards_alone_fill_once(p: int, m: int, f: float, c: float) -> None:
    schedule = forward_only(Placement.loop(p), m)
    report = simulate(schedule, Cost(f, 1, 1, transfer=c))
    assert report.makespan == (m + p - 1) * f + (p - 1) * c
    assert report.peak_in_flight == (1,) * p
