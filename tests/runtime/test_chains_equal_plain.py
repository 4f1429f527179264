"""Two chains through the ranks: still the plain model, on one device and with copies on two."""

import copy

import pytest
import torch
from torch import nn

from ppframe import Pipeline
from ppframe.errors import StageError
from ppframe.schedule import build_schedule
from tests.runtime.plain import (
    assert_equal,
    assert_same_answer,
    assert_same_gradients,
    gradients_of,
    pipeline_step,
    plain_step,
    run_modules,
    small_chain,
)

ONE, TWO = None, ("cpu", "cpu:0")
"""No devices named; or two that are told apart, so that ranks r and P - 1 - r need copies."""
CASES = [
    *(("chimera", 2, count) for count in (2, 6)),
    *(("chimera", 4, count) for count in (4, 12)),
    *(("dualpipe", 2, count) for count in (4, 10)),
    *(("dualpipe", 4, count) for count in (8, 10)),
]
every_case = pytest.mark.parametrize(("name", "ranks", "microbatches"), CASES)
both_ways = pytest.mark.parametrize("devices", [ONE, TWO], ids=["shared", "copied"])
both_names = pytest.mark.parametrize("name", ["chimera", "dualpipe"])


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(3)


def options(name, ranks, devices, **others):
    pair = devices and devices * (ranks // 2)
    return {"schedule": name, "ranks": ranks, "devices": pair, **others}


def batch(size, width=3):
    return torch.randn(size, width).double(), torch.randn(size, width).double()


@every_case
@both_ways
def test_a_last_microbatch_that_is_smaller(name, ranks, microbatches, devices):
    x, y = batch(2 * microbatches - 1)
    assert_equal(small_chain(ranks), x, y, nn.MSELoss(), options(name, ranks, devices))


@every_case
@both_ways
def test_several_steps_with_an_optimizer(name, ranks, microbatches, devices):
    """What the optimizer changes reaches both copies, and what both find reaches it."""
    plain, mine = small_chain(ranks), small_chain(ranks)
    update = torch.optim.SGD(nn.Sequential(*plain).parameters(), lr=0.1, momentum=0.9)
    layout = options(name, ranks, devices, num_microbatches=microbatches)
    with Pipeline(mine, loss=nn.MSELoss(), **layout) as pipe:
        optimizer = torch.optim.SGD(pipe.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            x, y = batch(microbatches + 1)
            for parameters in (update, optimizer):
                parameters.zero_grad()
            loss = nn.MSELoss()(run_modules(plain, x), y)
            loss.backward()
            result = pipe.step(x, y)
            torch.testing.assert_close(result.loss, loss.detach())
            assert_same_gradients(gradients_of(mine), gradients_of(plain))
            update.step()
            optimizer.step()
        torch.testing.assert_close(pipe.evaluate(x, y).loss, nn.MSELoss()(run_modules(plain, x), y))
        torch.testing.assert_close(pipe.forward(x), run_modules(plain, x).detach())


@both_names
@both_ways
@pytest.mark.parametrize("frozen", [(0,), (3,), (1, 2), (0, 1, 2, 3)])
def test_frozen_stages(name, devices, frozen):
    modules = small_chain(4)
    for stage in frozen:
        modules[stage].requires_grad_(False)
    layout = options(name, 4, devices, num_microbatches=8)
    x, y = batch(9)
    assert_equal(modules, x, y, nn.MSELoss(), layout, microbatch_size=None)


@both_names
@both_ways
def test_stages_that_share_parameters(name, devices):
    """Stages 0 and 2, whose copies lie on one device too; one module also stands in both."""
    modules = small_chain(4)
    modules[2] = nn.Sequential(modules[0], nn.Linear(3, 3).double())
    layout = options(name, 4, devices, num_microbatches=8)
    x, y = batch(11)
    assert_equal(modules, x, y, nn.MSELoss(), layout, microbatch_size=None)


@both_names
@both_ways
def test_gradients_accumulate_and_results_are_by_index(name, devices):
    modules = small_chain(2)
    expected = copy.deepcopy(modules)
    with Pipeline(
        modules, loss=nn.MSELoss(), **options(name, 2, devices, microbatch_size=2)
    ) as pipe:
        for size in (8, 12):
            x, y = batch(size)
            nn.MSELoss()(run_modules(expected, x), y).backward()
            result = pipe.step(x, y)
            alone = [
                nn.MSELoss()(run_modules(expected, part), target).item()
                for part, target in zip(x.split(2), y.split(2), strict=True)
            ]
            torch.testing.assert_close(result.microbatch_losses.tolist(), alone)
    assert_same_gradients(gradients_of(modules), gradients_of(expected))


@both_names
def test_running_statistics_are_those_of_microbatches_in_their_order(name):
    modules = [nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)) for _ in range(4)]
    expected = copy.deepcopy(modules)
    x, y = torch.randn(16, 3), torch.randn(16, 3)
    for part in x.split(2):
        run_modules(expected, part)
    with Pipeline(modules, loss=nn.MSELoss(), schedule=name, ranks=4, num_microbatches=8) as pipe:
        pipe.step(x, y)
        state = pipe.state_dict()
    for key, wanted in nn.Sequential(*expected).state_dict().items():
        torch.testing.assert_close(state[key], wanted)


@both_names
@both_ways
def test_dropout_does_not_depend_on_the_chain(name, devices):
    def stages():
        torch.manual_seed(7)
        return [nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).double() for _ in range(4)]

    x, y = batch(16)
    plain, mine = stages(), stages()
    with Pipeline(plain, loss=nn.MSELoss(), schedule="1f1b", ranks=4, num_microbatches=8) as pipe:
        wanted = [pipe.step(x, y) for _ in range(2)]
    layout = options(name, 4, devices, num_microbatches=8)
    with Pipeline(mine, loss=nn.MSELoss(), **layout) as pipe:
        found = [pipe.step(x, y) for _ in range(2)]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.microbatch_losses, other.microbatch_losses)
    assert_same_gradients(gradients_of(mine), gradients_of(plain))


@both_names
@both_ways
def test_class_weights_and_ignored_targets(name, devices):
    """The loss stands at the end of both chains, so its tensors are needed on both devices."""
    modules = [nn.Linear(4, 4) for _ in range(2)]
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5, 3.0]))
    targets = torch.tensor([-100, -100, 2, 1, 0, 3, 1])
    layout = options(name, 2, devices, num_microbatches=4)
    assert_equal(modules, torch.randn(7, 4), targets, loss, layout, microbatch_size=None)


@both_names
@both_ways
def test_keyword_arguments_reach_the_stages_of_both_chains(name, devices):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3).double()

        def forward(self, value, scale):
            return self.layer(value) * scale

    modules = [Scaled(), Scaled()]
    expected = copy.deepcopy(modules)
    (x, y), scale = batch(8), torch.randn(8, 1).double()
    nn.MSELoss()(run_modules(expected, x, scale=scale), y).backward()
    with Pipeline(
        modules, loss=nn.MSELoss(), **options(name, 2, devices, num_microbatches=4)
    ) as pipe:
        pipe.step(x, y, scale=scale)
    assert_same_gradients(gradients_of(modules), gradients_of(expected))


def test_parameters_stand_once_under_the_uncut_names_and_on_one_rank():
    modules = small_chain(4)
    with Pipeline(
        modules, loss=nn.MSELoss(), **options("dualpipe", 4, TWO, num_microbatches=8)
    ) as pipe:
        names = [name for name, _ in pipe.named_parameters()]
        by_rank = [[name for name, _ in owned] for owned in pipe.parameters_by_rank()]
        assert names == [name for name, _ in nn.Sequential(*modules).named_parameters()]
        assert [set(map(id, pipe.parameters()))] == [
            set(map(id, nn.Sequential(*modules).parameters()))
        ]
        assert by_rank == [[f"{rank}.0.weight", f"{rank}.0.bias"] for rank in range(4)]
        assert [(stage.rank, stage.copy_rank) for stage in pipe.stages] == [
            (0, 3), (1, 2), (2, 1), (3, 0),
        ]  # fmt: skip


def test_one_device_needs_no_copies():
    layout = options("dualpipe", 4, ONE, num_microbatches=8)
    with Pipeline(small_chain(4), loss=nn.MSELoss(), **layout) as pipe:
        assert {stage.copy_rank for stage in pipe.stages} == {None}


@both_names
def test_a_given_schedule_says_the_chains(name):
    schedule = build_schedule(name, ranks=2, microbatches=4)
    modules = small_chain(2)
    x, y = batch(7)
    actual = pipeline_step(modules, x, y, nn.MSELoss(), schedule=schedule)
    assert_same_answer(actual, plain_step(modules, x, y, nn.MSELoss()))


@pytest.mark.parametrize(("ranks", "stages"), [(None, 4), (4, 4)])
def test_ranks_may_be_left_to_the_number_of_stages(ranks, stages):
    with Pipeline(
        small_chain(stages), loss=nn.MSELoss(), schedule="chimera", ranks=ranks, microbatch_size=2
    ) as pipe:
        assert pipe.ranks == 4


@both_ways
def test_it_can_be_used_again_after_a_failure_on_the_second_chain(devices):
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3).double()
            self.limit = 100.0

        def forward(self, value):
            if value.abs().max() > self.limit:
                raise ValueError("too large")
            return self.layer(value)

    modules = [Fails(), Fails()]
    x, y = batch(8)
    expected = plain_step(modules, x, y, nn.MSELoss())
    with Pipeline(
        modules, loss=nn.MSELoss(), **options("chimera", 2, devices, microbatch_size=2)
    ) as pipe:
        large = x.clone()
        large[2] = 1e3
        with pytest.raises(StageError, match="too large") as caught:
            pipe.step(large, y)
        assert (caught.value.rank, str(caught.value.action)) == (1, "0F1")
        for parameter in pipe.parameters():
            parameter.grad = None
        torch.testing.assert_close(pipe.step(x, y).loss, expected.loss)
    assert_same_gradients(gradients_of(modules), expected.gradients)
