"""Stages in a row, without a schedule."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import pytest
import torch
from torch import nn

from ppframe import Pipeline
from ppframe.runtime.chain import Kind, StageChain

_T = TypeVar("_T")


class Diary:
    """Notes what is done, as (rank, stage, kind)."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, str]] = []

    def __call__(self, rank: int, stage: int, kind: Kind, work: Callable[[], _T]) -> _T:
        self.entries.append((rank, stage, kind))
        return work()


def three_stages() -> list[nn.Module]:
    torch.manual_seed(0)
    return [nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.GELU()), nn.Linear(4, 2)]


def chain_of(modules: list[nn.Module]) -> StageChain:
    loss = nn.MSELoss()
    pipeline = Pipeline(modules, loss=loss, schedule="1f1b", ranks=3, microbatch_size=2)
    return StageChain(pipeline, modules, loss=loss)


@pytest.mark.parametrize("split", [False, True])
def test_a_pass_goes_down_the_stages_and_back(split: bool) -> None:
    chain, diary = chain_of(three_stages()), Diary()
    assert chain.take(torch.ones(5, 3), torch.ones(5, 2), 2) == 2  # the third has one sample
    chain.run(1, diary, split=split)
    back = "backward_input" if split else "backward"
    assert diary.entries[:5] == [
        (0, 0, "forward"),
        (1, 0, "send_forward"),
        (1, 1, "forward"),
        (2, 1, "send_forward"),
        (2, 2, "forward"),
    ]
    assert diary.entries[5:10] == [
        (2, 2, back),
        (1, 2, "send_backward"),
        (1, 1, back),
        (0, 1, "send_backward"),
        (0, 0, back),
    ]
    weights = [(rank, rank, "backward_weight") for rank in (2, 1, 0)]
    assert diary.entries[10:] == (weights if split else [])
    assert all(stage.num_kept == 0 for stage in chain.stages)


@pytest.mark.parametrize("split", [False, True])
def test_its_gradients_are_the_plain_models(split: bool) -> None:
    modules = three_stages()
    plain, (inputs, targets) = copy.deepcopy(modules), (torch.randn(4, 3), torch.randn(4, 2))
    nn.MSELoss()(nn.Sequential(*plain)(inputs), targets).backward()
    chain = chain_of(modules)
    for microbatch in range(chain.take(inputs, targets, 2)):
        chain.run(microbatch, Diary(), split=split)
    for module, other in zip(modules, plain, strict=True):
        for parameter, expected in zip(module.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(parameter.grad, expected.grad)


def test_a_microbatch_larger_than_the_batch_is_the_batch() -> None:
    chain = chain_of(three_stages())
    assert chain.take(torch.ones(5, 3), torch.ones(5, 2), 8) == 1
    assert chain.inputs(0).shape == (5, 3)


def test_after_a_failure_nothing_is_held() -> None:
    chain = chain_of(three_stages())
    chain.take(torch.ones(2, 3), torch.ones(2, 2), 2)

    def fail_at_the_last(rank: int, stage: int, kind: Kind, work: Callable[[], _T]) -> _T:
        if stage == 2:
            raise KeyError
        return work()

    with pytest.raises(KeyError):
        chain.run(0, fail_at_the_last, split=False)
    chain.release()
    assert all(stage.num_kept == 0 for stage in chain.stages)
    assert list(chain.batch_tensors()) == []
