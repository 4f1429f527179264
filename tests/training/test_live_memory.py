"""Bytes that a piece of work leaves behind, counted by hand."""

from __future__ import annotations

import torch
from torch import nn

from ppframe.training.live_memory import LiveMemory


def test_what_is_dropped_is_not_counted() -> None:
    memory = LiveMemory()
    with memory.watching():
        kept, dropped = torch.ones(10), torch.ones(100)
    assert memory.live_bytes() == 440
    del dropped
    assert memory.live_bytes() == 40
    assert kept.sum() == 10


def test_views_count_once_and_whole() -> None:
    memory = LiveMemory()
    with memory.watching():
        whole = torch.ones(10)
        part = whole[2:4]
    del whole
    assert memory.live_bytes() == 40
    assert part.numel() == 2


def test_what_autograd_saves_is_counted_until_the_backward() -> None:
    leaf = torch.ones(10, requires_grad=True)
    memory = LiveMemory([leaf])
    with memory.watching():
        loss = leaf.exp().sum()  # exp keeps its result
    assert memory.live_bytes() == 40 + 4
    with memory.watching():
        torch.autograd.backward(loss)
    assert leaf.grad is not None
    assert memory.live_bytes() == 4 + 40  # the loss, and the gradient that is new


def test_parameters_and_what_writes_to_them_are_ignored() -> None:
    layer = nn.Linear(4, 4)
    memory = LiveMemory(layer.parameters())
    with memory.watching(), torch.no_grad():
        layer.weight.mul_(2.0)
        layer.weight.t().add_(1.0)
    assert memory.live_bytes() == 0


def test_what_somebody_else_made_is_counted_when_it_is_added() -> None:
    memory, arrived = LiveMemory(), {"x": torch.ones(3), "n": 1}
    memory.add(arrived)
    assert memory.live_bytes() == 12
    arrived.clear()
    assert memory.live_bytes() == 0


def test_tensors_without_a_storage_are_passed_by() -> None:
    memory = LiveMemory()
    with memory.watching():
        sparse = torch.ones(2, 2).to_sparse()
    assert sparse.is_sparse
    assert memory.live_bytes() >= 0
