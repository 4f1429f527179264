"""What stages hold, counted by hand: two samples of float32, so a row of n numbers is 8 n bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from ppframe import Pipeline
from ppframe.data.base import Batch
from ppframe.training.optim import NamedParameter
from ppframe.training.profile import ProfileSettings, StageProfile, profile_stages

SETTINGS = ProfileSettings(microbatch_size=2, warm_up=0, repeats=1)


def momentum(named: Iterable[NamedParameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named], lr=0.1, momentum=0.9)


def profiles(
    *stages: nn.Module, recompute: Literal["none", "full"] = "none"
) -> tuple[StageProfile, ...]:
    """Each module is a stage; the first gets 4 numbers a sample, the last gives 2."""
    modules, loss = list(stages), nn.MSELoss()
    batch = Batch(torch.ones(5, 4), torch.zeros(5, 2))
    with Pipeline(
        modules,
        loss=loss,
        schedule="1f1b",
        ranks=len(modules),
        microbatch_size=2,
        recompute=recompute,
    ) as pipeline:
        return profile_stages(
            pipeline, modules, batch, loss=loss, make_optimizer=momentum, settings=SETTINGS
        )


def frozen(module: nn.Module) -> nn.Module:
    return module.requires_grad_(False)


class Doubled(nn.Module):
    """Twice as many numbers, and nothing to keep for a gradient."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((x, x), dim=1)


FIRST, LAST = nn.Linear(4, 8), nn.Linear(16, 2)


@pytest.mark.parametrize(
    ("middle", "activation", "after_input"),
    [
        # What arrived (8) and ReLU's result (16). W needs what arrived, and the gradient behind
        # the product (16).
        (nn.Sequential(nn.Linear(8, 16), nn.ReLU()), 64 + 128, 64 + 128),
        # GELU keeps what it got (16), and the stage its result (16) to start from.
        (nn.Sequential(nn.Linear(8, 16), nn.GELU()), 64 + 128 + 128, 64 + 128),
        # W needs both operands of each product: 8 and 16, 32 and 16.
        (
            nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16)),
            64 + 256 + 128,
            64 + 256 + 256 + 128,
        ),
        # Nothing for W: the leaf that takes the gradient (8), and the result (16).
        (frozen(nn.Linear(8, 16)), 64 + 128, 0),
        (Doubled(), 64 + 128, 0),
    ],
    ids=["relu", "gelu", "two products", "frozen", "no parameters"],
)
def test_activations_are_what_f_leaves(
    middle: nn.Module, activation: int, after_input: int
) -> None:
    held = profiles(FIRST, middle, LAST)[1].held
    assert held.activation_bytes == activation
    assert held.weight_share == after_input / activation
    assert held.allocated_bytes is None


def test_what_is_recomputed_is_not_held() -> None:
    middle = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 16))
    _, held, _ = (p.held for p in profiles(FIRST, middle, LAST, recompute="full"))
    assert held.activation_bytes == 64  # what arrived
    # B leaves the operands of the products, 8 and 32, and the gradients behind them, 32 and 16.
    assert held.weight_share == (64 + 256 + 256 + 128) / 64


def test_the_batch_is_in_memory_anyway() -> None:
    first, last = profiles(nn.Linear(4, 16), LAST)
    assert first.held.activation_bytes == 128  # its output alone
    assert last.held.activation_bytes == 128 + 16  # what arrived; what the loss compares


class Fork(nn.Module):
    """A dict with one tensor that needs a gradient, and one that can't have any."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"twice": self.linear(x), "signs": (x > 0).to(torch.int64)}


class Join(nn.Module):
    """What Fork gave, multiplied."""

    def forward(self, both: dict[str, Tensor]) -> Tensor:
        return both["twice"] * both["signs"]


def test_a_boundary_of_several_tensors_counts_them_all() -> None:
    fork, join, _ = profiles(Fork(), Join(), nn.Linear(4, 2))
    assert fork.held.activation_bytes == 32 + 64  # four floats and four int64 a sample
    assert join.held.activation_bytes == 32 + 64 + 32  # both of them, and the product
    assert join.held.weight_share == 0.0


def test_weights_are_parameters_gradients_and_state() -> None:
    plain, norm, still = profiles(
        nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16)), frozen(LAST)
    )
    assert plain.weight_bytes == 3 * 4 * (4 * 8 + 8)  # the state is one momentum
    # Mean and variance are buffers, and the count of batches, an int64.
    assert norm.weight_bytes == 3 * 4 * (8 * 16 + 16 + 16 + 16) + 4 * (16 + 16) + 8
    assert still.weight_bytes == 4 * (16 * 2 + 2)


def test_a_parameter_that_is_used_twice_counts_once() -> None:
    shared = nn.Linear(8, 8)
    (_, middle, _) = profiles(FIRST, nn.Sequential(shared, nn.ReLU(), shared), nn.Linear(8, 2))
    assert middle.weight_bytes == 3 * 4 * (8 * 8 + 8)
    assert middle.num_waiting_weights == 2
