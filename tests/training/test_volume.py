"""What goes between ranks, counted by hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ppframe.schedule import build_schedule, lower
from ppframe.training.volume import Volume, volume_of


class WithIndex(nn.Module):
    """Hands on a float tensor and whole numbers, which have no gradient."""

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return inputs, torch.zeros(3, dtype=torch.int64)


class First(nn.Module):
    def forward(self, inputs: Tensor, _index: Tensor) -> Tensor:
        return inputs


class Looks(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        return inputs if inputs.sum().item() > 0 else -inputs


def volume(modules: list[nn.Module], counts: list[int], ranks: int, microbatches: int) -> Volume:
    lowered = lower(build_schedule("1f1b", ranks, microbatches))
    return volume_of(lowered, modules, counts, torch.zeros(2, 5))


def test_each_boundary_is_crossed_both_ways_by_each_microbatch() -> None:
    with torch.device("meta"):
        modules: list[nn.Module] = [nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3), nn.Linear(3, 1)]
    # [2, 7] after the second module, [2, 3] after the third, of 4 bytes each
    assert volume(modules, [2, 1, 1], 3, 6) == Volume(2 * 2 * 6, 2 * 6 * 4 * (14 + 6))


def test_a_stage_without_modules_hands_on_what_came() -> None:
    modules: list[nn.Module] = [nn.Identity()]
    assert volume(modules, [0, 1], 2, 1) == Volume(2, 2 * 10 * 4)


def test_whole_numbers_go_forth_only() -> None:
    modules: list[nn.Module] = [WithIndex(), First()]
    assert volume(modules, [1, 1], 2, 3) == Volume(6, 3 * (10 * 4 + 3 * 8) + 3 * 10 * 4)


def test_exchanged_messages_count_once() -> None:
    lowered = lower(build_schedule("1f1b", 2, 4), group=True)
    modules = [nn.Identity(), nn.Identity()]
    assert volume_of(lowered, modules, [1, 1], torch.zeros(1, 1)) == Volume(8, 8 * 4)


def test_a_size_that_needs_real_numbers_is_not_known() -> None:
    assert volume([Looks(), nn.Identity()], [1, 1], 2, 3) == Volume(6, None)
