"""Channels between ranks whose tensors lie on a GPU: they go through the host's memory."""

import pytest
import torch
from torch.utils._pytree import tree_leaves

from tests.transport.test_channel import Channel, message
from tests.transport.values import numbers

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_tensors_go_from_device_to_device(requires_grad):
    channel = Channel(device="cuda")
    for n in range(6):
        one = numbers(30, 20, start=n).cuda().requires_grad_(requires_grad)
        assert_arrives(channel, n, one)
        assert_arrives(channel, n, (one * 2, one[:, ::2]))


def assert_arrives(channel, microbatch, value):
    channel.receiving.announce([message(microbatch)])
    channel.send(message(microbatch), value)
    arrived = channel.receiving.receive(message(microbatch))
    for leaf, sent in zip(tree_leaves(arrived), tree_leaves(value), strict=True):
        assert leaf.is_cuda
        assert leaf.is_leaf
        assert leaf.requires_grad == sent.requires_grad
        assert torch.equal(leaf, sent)
