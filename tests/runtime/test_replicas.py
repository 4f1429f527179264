"""Copies on other devices: what they share, when they follow, and what they can't hold."""

import pytest
import torch
from torch import nn

from ppframe import Pipeline
from ppframe.errors import ConfigError
from ppframe.runtime.replicas import Replicas

OTHER = torch.device("cpu:0")  # not equal to `cpu`, so that it counts as another device


def test_modules_that_share_a_parameter_have_copies_that_share_one():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    replicas = Replicas()
    copies = [replicas.add(str(i), module, OTHER) for i, module in enumerate((first, second))]
    assert copies[0].weight is copies[1].weight
    assert copies[0].weight is not first.weight
    assert replicas.add("0", first, OTHER) is copies[0]
    assert replicas.add("0", first, torch.device("cpu")) is not copies[0]


def test_copies_follow_values_and_flags_before_a_step():
    master = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    replicas = Replicas()
    replica = replicas.add("0", master, OTHER)
    with torch.no_grad():
        master[0].weight.fill_(3)
    master[0].bias.requires_grad_(False)
    master[1].running_mean.fill_(5)
    master[1].eval()
    replicas.refresh()
    assert torch.equal(replica[0].weight, master[0].weight)
    assert [p.requires_grad for p in replica.parameters()] == [True, False, True, True]
    assert torch.equal(replica[1].running_mean, master[1].running_mean)
    assert (replica[0].training, replica[1].training) == (True, False)


def test_gradients_are_added_to_the_master_s_and_gone():
    master = nn.Linear(2, 1, bias=False)
    replicas = Replicas()
    replica = replicas.add("0", master, OTHER)
    x = torch.tensor([[1.0, 2.0]])
    for wanted in ([1.0, 2.0], [2.0, 4.0]):
        replicas.refresh()
        replica(x).backward()
        replicas.gather()
        assert master.weight.grad.tolist() == [wanted]
        assert replica.weight.grad is None
    replica(x).backward()
    replicas.release()
    assert replica.weight.grad is None
    assert master.weight.grad.tolist() == [[2.0, 4.0]]


class Replaces(nn.Module):
    """Puts a new buffer in place of the old one."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, value):
        if self.training:
            self.mean = value.mean(0).detach()
        return self.layer(value)


@pytest.mark.parametrize(
    ("stage", "name"), [(nn.BatchNorm1d(3), "1.running_mean"), (Replaces(), "1.mean")]
)
def test_a_buffer_that_a_forward_writes_is_refused_with_its_name(stage, name):
    modules = [nn.Linear(3, 3), stage]
    x = torch.randn(8, 3)
    with Pipeline(
        modules, loss=nn.MSELoss(), schedule="chimera", devices=["cpu", "cpu:0"], microbatch_size=2
    ) as pipe:
        with pytest.raises(ConfigError, match=f"`{name}` is written to. Put ranks r"):
            pipe.step(x, x)
        stage.eval()
        pipe.step(x, x)
        assert pipe.evaluate(x, x).loss > 0


def test_a_fixed_buffer_is_no_fault():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.register_buffer("table", torch.arange(3.0))

        def forward(self, value):
            return self.layer(value) + self.table

    x = torch.randn(8, 3)
    with Pipeline(
        [Fixed(), Fixed()],
        loss=nn.MSELoss(),
        schedule="chimera",
        devices=["cpu", "cpu:0"],
        microbatch_size=2,
    ) as pipe:
        pipe.step(x, x)
