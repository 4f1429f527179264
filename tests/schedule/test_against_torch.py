"""The same order as torch's own generators, where ours claims to be the same schedule.

Not torch's 1F1B: its list fills the pipeline with one forward fewer, so it is another schedule.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ppframe.schedule import build_schedule, lower
from tests.strategies import GENERATORS

torch_schedules = pytest.importorskip("torch.distributed.pipelining.schedules")


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
        _n_microbatches=microbatches,
        pp_group_size=ranks,
        rank=rank,
        n_local_stages=chunks,
        number_of_rounds=rounds,
        microbatches_per_round=microbatches // rounds,
    )


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
    generate = torch_schedules.ScheduleLoopedBFS._calculate_single_rank_operations
    theirs = [
        names_of(generate(stand_in(ranks, microbatches, chunks, rank), rank))
        for rank in range(ranks)
    ]
    assert ours("looped-bfs", ranks, microbatches, chunks) == theirs


TAKEN_BY_TORCH = [
    (ranks, microbatches)
    for ranks in (1, 2, 3, 4, 7)
    for microbatches in (1, 2, 3, 4, 6, 8, 10, 12, 14, 20)
    if microbatches % max(1, microbatches // ranks) == 0
]


@pytest.mark.parametrize(("ranks", "microbatches"), TAKEN_BY_TORCH)
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_interleaved_1f1b(ranks: int, chunks: int, microbatches: int) -> None:
    generate = torch_schedules.ScheduleInterleaved1F1B._calculate_single_rank_operations
    theirs = [
        names_of(generate(stand_in(ranks, microbatches, chunks, rank), rank))
        for rank in range(ranks)
    ]
    assert ours("interleaved-1f1b", ranks, microbatches, chunks) == theirs
    assert ours("dora-dfs", ranks, microbatches, chunks) == theirs


@pytest.mark.parametrize("name", GENERATORS)
def test_torch_accepts_what_we_write(name: str) -> None:
    schedule = build_schedule(name, ranks=4, microbatches=8)
    actions = {
        rank: [torch_schedules._Action.from_str(cell) for cell in line.split(",")]
        for rank, line in enumerate(schedule.to_text("torch").splitlines())
    }
    owners = torch_schedules._validate_schedule(actions, 4, schedule.num_stages, 8)
    assert owners == dict(enumerate(schedule.placement))


@pytest.mark.parametrize("name", GENERATORS)
def test_torch_runs_our_lowered_schedules_to_the_end(name: str, tmp_path: Path) -> None:
    lowered = lower(build_schedule(name, ranks=4, microbatches=8))
    lowered.to_csv(tmp_path / "lowered.csv", dialect="torch")
    actions = {
        rank: [torch_schedules._Action.from_str(cell) for cell in line.split(",")]
        for rank, line in enumerate((tmp_path / "lowered.csv").read_text().splitlines())
    }
    simulated = torch_schedules._simulate_comms_compute(
        actions, lambda stage: lowered.placement[stage], lowered.num_stages
    )
    ran = [sum(action is not None for action in simulated[rank]) for rank in range(4)]
    assert ran == [len(row) for row in lowered.actions]
