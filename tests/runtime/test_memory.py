"""What is alive while a schedule runs is what the simulator says."""

from __future__ import annotations

import weakref
from collections import Counter

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from ppframe import Pipeline
from ppframe.schedule import Schedule, build_schedule, nearest_microbatches
from ppframe.simulator import Cost, simulate
from tests.strategies import GENERATORS, Shape, taken_near


class Alive:
    """Activations that exist now, by rank, and the most that ever did."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.now: Counter[int] = Counter()
        self.most: Counter[int] = Counter()

    def add(self, stage: int, microbatch: int, tensor: Tensor) -> None:
        rank = self.schedule.rank_of(stage, microbatch)
        self.now[rank] += 1
        self.most[rank] = max(self.most[rank], self.now[rank])
        weakref.finalize(tensor.untyped_storage(), self._gone, rank)

    def _gone(self, rank: int) -> None:
        self.now[rank] -= 1

    def peaks(self) -> tuple[int, ...]:
        return tuple(self.most[rank] for rank in range(self.schedule.ranks))


class Watched(nn.Module):
    """Two layers: what is between them is kept until W, what comes before until B."""

    def __init__(self, stage: int, until_b: Alive, until_w: Alive) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)
        self.stage, self.until_b, self.until_w = stage, until_b, until_w

    def forward(self, x: Tensor, microbatch: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.one(x)
        operand = functional.gelu(hidden)
        self.until_b.add(self.stage, int(microbatch[0]), hidden)
        self.until_w.add(self.stage, int(microbatch[0]), operand)
        return self.two(operand), microbatch


class Error(nn.Module):
    def forward(self, output: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
        return functional.mse_loss(output[0], target)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", GENERATORS)
def test_peaks_are_those_of_the_simulator(name, ranks):
    ranks = taken_near(name, Shape(ranks, 1, 9)).ranks
    microbatches = nearest_microbatches(name, ranks, 9)
    schedule = build_schedule(name, ranks, microbatches)
    until_b, until_w = Alive(schedule), Alive(schedule)
    modules = [Watched(stage, until_b, until_w) for stage in range(schedule.num_stages)]
    with Pipeline(modules, loss=Error(), schedule=schedule, microbatch_size=2) as pipe:
        x, y = torch.randn(2 * microbatches, 3), torch.randn(2 * microbatches, 3)
        numbers = torch.arange(microbatches).repeat_interleave(2)
        pipe.step((x, numbers), y)
    report = simulate(schedule, Cost(1, 1, 1, weight_share=0.0))
    assert until_w.peaks() == report.peak_in_flight
    assert until_b.peaks() == tuple(map(round, report.peak_activation))
    assert not any(until_b.now.values())
    assert not any(until_w.now.values())
