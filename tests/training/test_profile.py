"""Profiles of whole models."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from ppframe import Pipeline
from ppframe.data.base import Batch
from ppframe.training.optim import adamw
from ppframe.training.profile import (
    ProfileSettings,
    StageProfile,
    machine_of,
    microbatch_shapes,
    profile_stages,
)

BATCH = Batch(torch.ones(6, 4), torch.zeros(6, 4))


def profiled(
    modules: Sequence[nn.Module], *, ranks: int, schedule: str = "1f1b", repeats: int = 2
) -> tuple[StageProfile, ...]:
    loss = nn.MSELoss()
    settings = ProfileSettings(microbatch_size=2, warm_up=1, repeats=repeats)
    with Pipeline(
        modules, loss=loss, schedule=schedule, ranks=ranks, microbatch_size=2
    ) as pipeline:
        return profile_stages(
            pipeline, modules, BATCH, loss=loss, make_optimizer=adamw(lr=0.1), settings=settings
        )


def linears(count: int) -> list[nn.Module]:
    return [nn.Linear(4, 4) for _ in range(count)]


def test_every_action_and_every_hop_is_timed() -> None:
    first, *_, last = profiles = profiled(linears(4), ranks=2, schedule="zbv")
    assert len(profiles) == 4
    assert all(min(p.times.forward_s, p.times.backward_s) > 0 for p in profiles)
    assert all(min(p.times.backward_input_s, p.times.backward_weight_s) > 0 for p in profiles)
    # The first sends its output alone, the last its gradient alone; both are hops.
    assert min(first.times.transfer_s, last.times.transfer_s) > 0


def test_a_single_stage_sends_nothing() -> None:
    (only,) = profiled(linears(1), ranks=1)
    assert only.times.transfer_s == 0.0


def test_it_says_how_much_is_left_for_w() -> None:
    modules = [nn.Linear(4, 4), nn.Sequential(nn.Tanh(), nn.LayerNorm(4)), nn.Linear(4, 4)]
    first, norm, _ = profiled(modules, ranks=3)
    assert first.num_waiting_weights == 2
    assert norm.num_waiting_weights == 0  # a norm's weights are no product: B has them


def test_the_model_is_as_it_was() -> None:
    modules: list[nn.Module] = [
        nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)),
        nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4)),
    ]
    before = copy.deepcopy(nn.Sequential(*modules).state_dict())
    random = torch.get_rng_state()
    profiled(modules, ranks=2)
    after = nn.Sequential(*modules).state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert all(p.grad is None for module in modules for p in module.parameters())
    assert torch.equal(torch.get_rng_state(), random)
    assert all(module.training for module in modules)


class Fails(nn.Module):
    """Takes no more than some microbatches."""

    left: Tensor

    def __init__(self, good: int) -> None:
        super().__init__()
        self.register_buffer("left", torch.tensor(good))

    def forward(self, x: Tensor) -> Tensor:
        if self.left == 0:
            raise ValueError("enough")
        self.left -= 1
        return x


def test_a_model_that_fails_is_as_it_was_too() -> None:
    fails = Fails(3)
    with pytest.raises(ValueError, match="enough"):
        profiled([nn.Linear(4, 4), fails], ranks=2)
    assert fails.left == 3


def test_it_goes_through_the_microbatches_in_turn() -> None:
    """Warm-up and repeats make two passes each, and memory is counted in one more."""
    counts = Fails(9)
    profiled([nn.Linear(4, 4), counts], ranks=2, repeats=3)  # 2 · (1 + 3) + 1
    with pytest.raises(ValueError, match="enough"):
        profiled([nn.Linear(4, 4), counts], ranks=2, repeats=4)


def test_a_machine_and_a_microbatch_are_told_in_words() -> None:
    machine = machine_of([torch.device("cpu")] * 2)
    assert machine.devices[0].startswith("cpu ")
    assert machine.devices[0] == machine.devices[1]
    assert machine.torch == str(torch.__version__)
    tokens = {"ids": torch.zeros(8, 3, dtype=torch.int64), "mask": torch.ones(8)}
    assert microbatch_shapes(tokens, 2) == ("int64 [2, 3]", "float32 [2]")
