"""Pipelines on a GPU; several ranks share the first one, and use more where there are more."""

import copy

import pytest
import torch
from torch import nn

from ppframe import Pipeline
from ppframe.data import Batch
from ppframe.training.optim import adamw
from ppframe.training.profile import ProfileSettings, profile_stages
from tests.runtime.plain import assert_same_gradients, gradients_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

SCHEDULES = ("gpipe", "1f1b", "interleaved-1f1b", "looped-bfs", "dora-dfs", "dora")


def chain(num_modules, width=64):
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(width, width), nn.Tanh()).double() for _ in range(num_modules)]


def devices(ranks):
    return [f"cuda:{rank % torch.cuda.device_count()}" for rank in range(ranks)]


def expected_gradients(modules, x, y):
    plain = copy.deepcopy(modules)
    loss = nn.MSELoss()(nn.Sequential(*plain)(x), y)
    loss.backward()
    return loss.detach(), gradients_of(plain)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_gradients_equal_the_plain_models_on_the_cpu(schedule, ranks):
    chunks = 1 if schedule in ("gpipe", "1f1b") else 2
    modules = chain(ranks * chunks)
    x, y = torch.randn(13, 64).double(), torch.randn(13, 64).double()
    loss, gradients = expected_gradients(modules, x, y)
    options = {"schedule": schedule, "ranks": ranks, "microbatch_size": 2}
    with Pipeline(modules, loss=nn.MSELoss(), devices=devices(ranks), **options) as pipe:
        result = pipe.step(x, y)
        torch.testing.assert_close(result.loss.cpu(), loss)
        found = {
            name: None if p.grad is None else p.grad.cpu() for name, p in pipe.named_parameters()
        }
    assert_same_gradients(found, gradients)


class Sleeps(nn.Module):
    """Makes the device late, so that a read without a wait gets the wrong numbers."""

    def __init__(self, cycles):
        super().__init__()
        self.cycles = cycles

    def forward(self, x):
        torch.cuda._sleep(self.cycles)
        return x * 1.0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_stream_reads_what_another_has_not_written(schedule):
    chunks = 1 if schedule in ("gpipe", "1f1b") else 2
    modules = chain(4 * chunks)
    x, y = torch.randn(16, 64).double(), torch.randn(16, 64).double()
    _, gradients = expected_gradients(modules, x, y)
    late = [
        nn.Sequential(Sleeps(200_000 * (index % 3)), module) for index, module in enumerate(modules)
    ]
    options = {"schedule": schedule, "ranks": 4, "microbatch_size": 2}
    with Pipeline(late, loss=nn.MSELoss(), devices=devices(4), **options) as pipe:
        for _ in range(5):
            for parameter in pipe.parameters():
                parameter.grad = None
            pipe.step(x, y)
            poison = [torch.full((256, 256), float("nan"), device="cuda") for _ in range(8)]
            del poison
        found = {name.replace(".1.", ".", 1): p.grad.cpu() for name, p in pipe.named_parameters()}
    assert_same_gradients(found, gradients)


def test_dropout_is_the_same_for_any_number_of_ranks():
    def gradient(ranks):
        modules = [nn.Sequential(module, nn.Dropout(0.5)) for module in chain(4)]
        x = torch.ones(8, 64).double()
        options = {"schedule": "1f1b", "ranks": ranks, "chunks_per_rank": 1, "microbatch_size": 2}
        with Pipeline(modules, loss=nn.MSELoss(), devices="cuda", **options) as pipe:
            pipe.step(x, x)
            return torch.cat([p.grad.flatten() for p in pipe.parameters()])

    torch.testing.assert_close(gradient(4), gradient(1))


def test_memory_is_flat_over_steps():
    modules = chain(4)
    x = torch.randn(16, 64).double()
    with Pipeline(
        modules, loss=nn.MSELoss(), devices="cuda", schedule="1f1b", ranks=4, microbatch_size=2
    ) as pipe:
        for _ in range(3):
            pipe.step(x, x)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for _ in range(20):
            pipe.step(x, x)
        torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() == before


def test_a_recorded_step_is_timed_on_the_device():
    modules = [nn.Sequential(Sleeps(2_000_000), module) for module in chain(2)]
    x = torch.randn(4, 64).double()
    with Pipeline(
        modules, loss=nn.MSELoss(), devices="cuda", schedule="1f1b", ranks=2, microbatch_size=2
    ) as pipe:
        pipe.step(x, x)
        pipe.record = True
        timeline = pipe.step(x, x).timeline
    forwards = [entry for entry in timeline if str(entry.action) in ("0F0", "1F0")]
    assert len(forwards) == 2
    assert all(entry.end_s - entry.start_s > 1e-4 for entry in forwards)


def test_a_profile_is_timed_and_counted_on_the_device():
    modules = [nn.Sequential(Sleeps(2_000_000), module) for module in chain(3)]
    batch, loss = Batch(torch.randn(6, 64).double(), torch.randn(6, 64).double()), nn.MSELoss()
    settings = ProfileSettings(microbatch_size=2, warm_up=1, repeats=3)
    with Pipeline(
        modules, loss=loss, devices=devices(3), schedule="1f1b", ranks=3, microbatch_size=2
    ) as pipe:
        _, middle, _ = profile_stages(
            pipe, modules, batch, loss=loss, make_optimizer=adamw(lr=0.1), settings=settings
        )
    assert middle.times.forward_s > 1e-4
    assert middle.times.transfer_s > 0
    # Two rows of 64 doubles each: what arrived, its product with 1.0, and the result of Tanh. The
    # first is no operand of W; its leaf is kept for the gradient. The allocator counts by 512.
    assert middle.held.activation_bytes == 3 * 1024
    assert middle.held.allocated_bytes == 3 * 1024
    assert middle.held.allocated_peak_bytes >= 3 * 1024
    # W needs the product with 1.0, and the gradient behind Tanh.
    assert middle.held.weight_share == pytest.approx(2 / 3)
