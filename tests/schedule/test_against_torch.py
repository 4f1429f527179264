"""The same order as torch's own generators, where ours claims to be the same schedule.

Not torch's 1F1B: its list fills the pipeline with one forward fewer, so it is another schedule.
What differs is the letters: our B is torch's I, our BW its B, and an overlap has a longer name.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ppframe.schedule import build_schedule, lower, schedule_facts
from tests.goldens.__main__ import golden
from tests.strategies import GENERATORS

torch_schedules = pytest.importorskip("torch.distributed.pipelining.schedules")


# torch knows no schedule in which a stage is on two ranks.
ONE_CHAIN = [
    name
    for name in GENERATORS
    if (facts := schedule_facts(name)) is not None and facts.placement != "bidirectional"
]


def names_of(actions: list[Any]) -> list[str]:
    """Computations only: bubbles and reductions are left out."""
    return [str(a) for a in actions if a is not None and a.is_compute_op]


def ours(name: str, ranks: int, microbatches: int, chunks: int) -> list[list[str]]:
    schedule = build_schedule(name, ranks, microbatches, chunks_per_rank=chunks)
    return [line.split(",") for line in schedule.to_text("torch").splitlines()]


def stand_in(ranks: int, microbatches: int, chunks: int, rank: int) -> SimpleNamespace:
    """What torch's generators read of the schedule object that they are methods of."""
    rounds = max(1, microbatches // ranks)
    return SimpleNamespace(
        _stages=[None] * chunks,
        _num_stages=ranks * chunks,
        num_stages=ranks * chunks,
        _n_microbatches=microbatches,
        pp_group_size=ranks,
        rank=rank,
        n_local_stages=chunks,
        number_of_rounds=rounds,
        microbatches_per_round=microbatches // rounds,
    )


def theirs(generator: type, ranks: int, microbatches: int, chunks: int) -> list[list[str]]:
    """For each rank, torch's list of computations."""
    generate = generator._calculate_single_rank_operations  # type: ignore[attr-defined]
    return [
        names_of(generate(stand_in(ranks, microbatches, chunks, rank), rank))
        for rank in range(ranks)
    ]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("microbatches", [1, 2, 3, 4, 6, 8, 11])
def test_gpipe(ranks: int, microbatches: int) -> None:
    order = torch_schedules.ScheduleGPipe._get_pipeline_order(
        stand_in(ranks, microbatches, 1, rank=0)
    )
    assert ours("gpipe", ranks, microbatches, 1) == [names_of(order[r]) for r in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("chunks", [1, 2, 3])
@pytest.mark.parametrize("microbatches", [1, 2, 3, 4, 6, 8, 11])
def test_looped_bfs(ranks: int, chunks: int, microbatches: int) -> None:
    wanted = theirs(torch_schedules.ScheduleLoopedBFS, ranks, microbatches, chunks)
    assert ours("looped-bfs", ranks, microbatches, chunks) == wanted


TAKEN_BY_TORCH = [
    (ranks, microbatches)
    for ranks in (1, 2, 3, 4, 7)
    for microbatches in (1, 2, 3, 4, 6, 8, 10, 12, 14, 20)
    if microbatches % max(1, microbatches // ranks) == 0
]


@pytest.mark.parametrize(("ranks", "microbatches"), TAKEN_BY_TORCH)
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_interleaved_1f1b(ranks: int, chunks: int, microbatches: int) -> None:
    wanted = theirs(torch_schedules.ScheduleInterleaved1F1B, ranks, microbatches, chunks)
    assert ours("interleaved-1f1b", ranks, microbatches, chunks) == wanted
    assert ours("dora-dfs", ranks, microbatches, chunks) == wanted


@pytest.mark.parametrize(("ranks", "microbatches"), TAKEN_BY_TORCH)
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_interleaved_zb(ranks: int, chunks: int, microbatches: int) -> None:
    wanted = theirs(torch_schedules.ScheduleInterleavedZeroBubble, ranks, microbatches, chunks)
    assert ours("interleaved-zb", ranks, microbatches, chunks) == wanted


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("microbatches", [1, 2, 3, 4, 6, 8, 11, 20])
def test_zbv(ranks: int, microbatches: int) -> None:
    wanted = theirs(torch_schedules.ScheduleZBVZeroBubble, ranks, microbatches, 2)
    assert ours("zbv", ranks, microbatches, 2) == wanted


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("more", [0, 1, 2, 5, 10])
def test_dualpipe_v(ranks: int, more: int) -> None:
    wanted = theirs(torch_schedules.ScheduleDualPipeV, ranks, 2 * ranks + more, 2)
    assert ours("dualpipe-v", ranks, 2 * ranks + more, 2) == wanted


@pytest.mark.parametrize("name", ONE_CHAIN)
def test_torch_accepts_what_we_write(name: str) -> None:
    schedule = golden(name)
    actions = {
        rank: [torch_schedules._Action.from_str(cell) for cell in line.split(",")]
        for rank, line in enumerate(schedule.to_text("torch").splitlines())
    }
    owners = torch_schedules._validate_schedule(
        actions, schedule.ranks, schedule.num_stages, schedule.num_microbatches
    )
    assert owners == dict(enumerate(schedule.placement))


@pytest.mark.parametrize("name", ONE_CHAIN)
def test_torch_runs_our_lowered_schedules_to_the_end(name: str, tmp_path: Path) -> None:
    lowered = lower(golden(name))
    lowered.to_csv(tmp_path / "lowered.csv", dialect="torch")
    actions = {
        rank: [part for cell in line.split(",") for part in singles(cell)]
        for rank, line in enumerate((tmp_path / "lowered.csv").read_text().splitlines())
    }
    simulated = torch_schedules._simulate_comms_compute(
        actions, lambda stage: lowered.placement[stage], lowered.num_stages
    )
    ran = [sum(action is not None for action in simulated[rank]) for rank in range(lowered.ranks)]
    assert ran == [len(row) for row in actions.values()]


def singles(cell: str) -> list[Any]:
    """torch's action of a cell; both of an overlap, for its simulator doesn't know those."""
    action = torch_schedules._Action.from_str(cell)
    return list(action.sub_actions or [action])
