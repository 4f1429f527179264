"""Models that other pipeline trainers get wrong, each compared with plain autograd."""

import copy
from itertools import product

import pytest
import torch
from torch import nn
from torch.nn import functional

from ppframe import Pipeline, Replicate, Split, add_auxiliary_loss
from ppframe.schedule import Schedule, build_schedule
from tests.runtime.plain import (
    assert_same_answer,
    assert_same_gradients,
    gradients_of,
    pipeline_step,
    plain_step,
    run_modules,
    small_chain,
)

LAYOUTS = [
    {"schedule": "gpipe", "ranks": 4},
    {"schedule": "1f1b", "ranks": 4},
    {"schedule": "dora-dfs", "ranks": 2},
    {"schedule": "looped-bfs", "ranks": 1},
]
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout["schedule"])


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(3)


def assert_equal(modules, inputs, targets, loss, layout, microbatch_size=2):
    actual = pipeline_step(
        modules, inputs, targets, loss, microbatch_size=microbatch_size, **layout
    )
    assert_same_answer(actual, plain_step(modules, inputs, targets, loss))


@layouts
@pytest.mark.parametrize("frozen", list(product([False, True], repeat=4)))
def test_every_subset_of_frozen_stages(frozen, layout):
    modules = small_chain(4)
    for module, freeze in zip(modules, frozen, strict=True):
        module.requires_grad_(not freeze)
    x, y = torch.randn(5, 3).double(), torch.randn(5, 3).double()
    assert_equal(modules, x, y, nn.MSELoss(), layout)


class WithTable(nn.Module):
    """Returns its output and a parameter that doesn't depend on the input."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.table = nn.Parameter(torch.randn(3))

    def forward(self, x):
        return self.layer(x), self.table


class AddTable(nn.Module):
    def forward(self, x, table):
        return x * table


@layouts
def test_output_that_depends_only_on_parameters(layout):
    modules = [WithTable(), AddTable(), nn.Linear(3, 3), nn.Identity()]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


class Twice(nn.Module):
    """The same block applied twice, and one weight twice on one path."""

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(3, 3), nn.GELU(), nn.LayerNorm(3))
        self.weight = nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        x = self.block(self.block(x)) + x
        return functional.linear(functional.linear(x, self.weight), self.weight)


class ChunkedProjection(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(3, 9)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return q * k.sigmoid() + v


@layouts
def test_parameters_used_twice_and_chunked_projections(layout):
    modules = [Twice(), ChunkedProjection(), Twice(), nn.Linear(3, 3)]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


@layouts
def test_one_module_in_two_stages(layout):
    shared = nn.Linear(3, 3)
    modules = [shared, nn.Tanh(), shared, nn.Linear(3, 3)]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 4)

    def forward(self, ids):
        return ids, self.table(ids), (ids % 2 == 0).float(), self.table.weight.sum()


class EmbedsAgain(nn.Module):
    """Embeds the integers that were passed through; one input is used by nobody."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 4)

    def forward(self, ids, hidden, mask, unused):
        return {"h": hidden * mask.unsqueeze(-1) + self.table(ids), "more": (mask, [ids])}


class TakesDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, value):
        assert value["more"][1][0].dtype == torch.int64
        return self.layer(value["h"]).transpose(1, 2)


class TakesTransposed(nn.Module):
    """Its input isn't contiguous, and it writes to it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 11)

    def forward(self, x):
        return self.layer(functional.relu(x, inplace=True).transpose(1, 2)).flatten(0, 1)


@layouts
def test_integers_masks_unused_outputs_dicts_and_noncontiguous_tensors(layout):
    modules = [Embedding(), EmbedsAgain(), TakesDict(), TakesTransposed()]
    ids = torch.randint(0, 11, (5, 6))
    targets = ids.flip(1)

    def loss(output, target):
        return functional.cross_entropy(output, target.flatten())

    assert_equal(modules, ids, targets, loss, layout)


@layouts
def test_stages_that_start_in_place_after_a_stage_that_saved_its_output(layout):
    modules = [
        nn.Sequential(nn.Linear(3, 3), nn.Sigmoid()),
        nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3)),
        nn.Sequential(nn.Hardtanh(inplace=True), nn.Linear(3, 3), nn.Tanh()),
        nn.Sequential(nn.Dropout(0.0, inplace=True), nn.Linear(3, 3)),
    ]
    plain = copy.deepcopy(modules)
    for module in plain:
        for part in module:
            if hasattr(part, "inplace"):
                part.inplace = False
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    actual = pipeline_step(modules, x, y, nn.MSELoss(), microbatch_size=2, **layout)
    assert_same_answer(actual, plain_step(plain, x, y, nn.MSELoss()))


@layouts
def test_dtypes_change_between_stages(layout):
    class ToBfloat16(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3, dtype=torch.bfloat16)

        def forward(self, x):
            return self.layer(x.bfloat16())

    class ToFloat(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            assert x.dtype == torch.bfloat16
            return self.layer(x.float())

    modules = [nn.Linear(3, 3), ToBfloat16(), ToFloat(), nn.Linear(3, 3)]
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    actual = pipeline_step(modules, x, y, nn.MSELoss(), microbatch_size=4, **layout)
    assert_same_answer(actual, plain_step(modules, x, y, nn.MSELoss()))


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.layer(x)


@layouts
def test_autocast_in_one_stage_only(layout):
    modules = [nn.Linear(3, 3), Autocast(), nn.Linear(3, 3, dtype=torch.bfloat16), nn.Identity()]
    x, y = torch.randn(4, 3), torch.randn(4, 3).bfloat16()
    assert_equal(modules, x, y, nn.MSELoss(), layout, microbatch_size=4)


@layouts
def test_autocast_around_the_step(layout):
    modules = [nn.Linear(3, 3) for _ in range(4)]
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    expected = copy.deepcopy(modules)
    with torch.autocast("cpu", torch.bfloat16):
        value = nn.MSELoss()(run_modules(expected, x), y)
    value.backward()
    pipe = Pipeline(modules, loss=nn.MSELoss(), microbatch_size=4, **layout)
    with torch.autocast("cpu", torch.bfloat16):
        result = pipe.step(x, y)
    torch.testing.assert_close(result.loss, value.detach())
    assert_same_gradients(gradients_of(modules), gradients_of(expected))


@layouts
def test_batch_norm_sees_the_microbatches_in_order(layout):
    modules = [nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3), nn.BatchNorm1d(3)]
    x, y = torch.randn(8, 3), torch.randn(8, 3)
    expected = copy.deepcopy(modules)
    total = 0.0
    for part, target in zip(x.split(2), y.split(2), strict=True):
        value = nn.MSELoss()(run_modules(expected, part), target) / 4
        value.backward()
        total += value.item()
    actual = pipeline_step(modules, x, y, nn.MSELoss(), microbatch_size=2, **layout)
    torch.testing.assert_close(actual.loss.item(), total)
    assert_same_gradients(actual.gradients, gradients_of(expected))
    state = nn.Sequential(*expected).state_dict()
    assert int(state["1.num_batches_tracked"]) == 4
    for name, wanted in state.items():
        torch.testing.assert_close(actual.state[name], wanted)


@pytest.mark.parametrize("layout", [*LAYOUTS, {"schedule": "dora-dfs", "ranks": 4}])
def test_embedding_and_head_share_one_parameter_over_fifty_steps(layout):
    class Head(nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.weight = weight

        def forward(self, x):
            return functional.linear(x, self.weight).flatten(0, 1)

    embedding = nn.Embedding(7, 4)
    modules = [embedding, nn.Linear(4, 4), nn.Linear(4, 4), Head(embedding.weight)]
    expected = copy.deepcopy(modules)
    assert expected[3].weight is expected[0].weight
    ids, targets = torch.randint(0, 7, (5, 3)), torch.randint(0, 7, (5, 3))

    def loss(output, target):
        return functional.cross_entropy(output, target.flatten())

    with Pipeline(modules, loss=loss, microbatch_size=2, **layout) as pipe:
        assert len(list(pipe.parameters())) == 5
        assert {"0.weight", "3.weight"} <= pipe.state_dict().keys()
        assert sum(len(rank) for rank in pipe.parameters_by_rank()) == 5
        sgd = torch.optim.SGD(pipe.parameters(), lr=0.1)
        plain_sgd = torch.optim.SGD(nn.Sequential(*expected).parameters(), lr=0.1)
        for _ in range(50):
            pipe.step(ids, targets)
            sgd.step()
            sgd.zero_grad()
            loss(run_modules(expected, ids), targets).backward()
            plain_sgd.step()
            plain_sgd.zero_grad()
    assert modules[3].weight is modules[0].weight
    torch.testing.assert_close(modules[0].weight, expected[0].weight)


@layouts
def test_shapes_change_from_step_to_step(layout):
    modules = [nn.Conv1d(2, 2, 3, padding=1) for _ in range(4)]
    with Pipeline(copy.deepcopy(modules), loss=nn.MSELoss(), microbatch_size=2, **layout) as pipe:
        for samples, length in ((4, 16), (3, 24), (1, 5), (4, 16)):
            x, y = torch.randn(samples, 2, length), torch.randn(samples, 2, length)
            result = pipe.step(x, y)
            expected = plain_step(modules, x, y, nn.MSELoss())
            torch.testing.assert_close(result.loss, expected.loss)
            found = {name: p.grad for name, p in pipe.named_parameters()}
            assert_same_gradients(found, expected.gradients)
            for parameter in pipe.parameters():
                parameter.grad = None


def test_last_stage_may_run_microbatches_in_any_order():
    usual = build_schedule("gpipe", ranks=2, microbatches=3)
    first, last = usual.actions
    by_name = {str(action): action for action in last}
    order = ["1F1", "1BW1", "1F0", "1F2", "1BW2", "1BW0"]
    schedule = Schedule(
        actions=(first, tuple(by_name[name] for name in order)), placement=usual.placement
    )
    modules = small_chain(2)
    x, y = torch.randn(7, 3).double(), torch.randn(7, 3).double()
    assert_equal(modules, x, y, nn.MSELoss(), {"schedule": schedule}, microbatch_size=None)
    with Pipeline(modules, loss=nn.MSELoss(), schedule=schedule) as pipe:
        result = pipe.step(x, y)
    for index, (part, target) in enumerate(zip(x.tensor_split(3), y.tensor_split(3), strict=True)):
        alone = nn.MSELoss()(run_modules(modules, part), target)
        torch.testing.assert_close(result.microbatch_losses[index], alone.detach())


class TakesArguments(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, mask=None, table=None, scale=None, nested=None, note=None):
        x = self.layer(x) * mask.unsqueeze(-1) + table[nested["rows"]] * scale
        return x + nested["bias"] + note.offset


class Note:
    offset = 0.5


def test_keyword_arguments_by_rule_and_by_default(caplog):
    modules = [TakesArguments(), nn.Tanh(), TakesArguments(), nn.Linear(3, 3)]
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    arguments = {
        "mask": torch.rand(5),
        "table": torch.randn(7, 3),
        "scale": torch.tensor(0.3),
        "nested": {"rows": torch.randint(0, 7, (5,)), "bias": torch.randn(1, 3)},
        "note": Note(),
    }
    expected = copy.deepcopy(modules)
    value = nn.MSELoss()(run_modules(expected, x, **arguments), y)
    value.backward()
    for layout in LAYOUTS:
        mine = copy.deepcopy(modules)
        rules = {"mask": Split(), "table": Replicate()}
        options = {"loss": nn.MSELoss(), "microbatch_size": 2, "argument_rules": rules, **layout}
        with Pipeline(mine, **options) as pipe:
            result = pipe.step(x, y, **arguments)
        torch.testing.assert_close(result.loss, value.detach())
        assert_same_gradients(gradients_of(mine), gradients_of(expected))
    assert "`nested`" in caplog.text
    assert "`mask`" not in caplog.text


class Router(nn.Module):
    def __init__(self, quadratic=False):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.quadratic = quadratic

    def forward(self, x):
        gates = self.layer(x).softmax(-1)
        load = gates.mean(0)[0]
        add_auxiliary_loss(load**2 if self.quadratic else load)
        return x * gates


@layouts
@pytest.mark.parametrize("quadratic", [False, True])
def test_auxiliary_losses_of_middle_stages_are_added_and_reported(layout, quadratic):
    modules = [nn.Linear(3, 3), Router(quadratic), Router(quadratic), nn.Linear(3, 3)]
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    expected = copy.deepcopy(modules)
    total, auxiliary = 0.0, 0.0
    for part, target in zip(x.split(2), y.split(2), strict=True):
        value, added = part, 0.0
        for module in expected:
            if isinstance(module, Router):
                gates = module.layer(value).softmax(-1)
                load = gates.mean(0)[0]
                added = added + (load**2 if quadratic else load)
                value = value * gates
            else:
                value = module(value)
        weight = len(part) / 5
        loss = nn.MSELoss()(value, target)
        ((loss + added) * weight).backward()
        total += loss.item() * weight
        auxiliary += added.item() * weight
    mine = copy.deepcopy(modules)
    with Pipeline(mine, loss=nn.MSELoss(), microbatch_size=2, **layout) as pipe:
        result = pipe.step(x, y)
    torch.testing.assert_close(result.loss.item(), total)
    torch.testing.assert_close(result.auxiliary_loss.item(), auxiliary)
    assert_same_gradients(gradients_of(mine), gradients_of(expected))


@layouts
def test_ignored_targets_spread_unevenly(layout):
    modules = [nn.Linear(4, 4) for _ in range(4)]
    targets = torch.tensor([-100, -100, -100, -100, 2, 1, 0])
    assert_equal(modules, torch.randn(7, 4), targets, nn.CrossEntropyLoss(), layout)


@layouts
def test_gradients_accumulate_over_steps_without_rescaling(layout):
    modules = small_chain(4)
    batches = [(torch.randn(n, 3).double(), torch.randn(n, 3).double()) for n in (5, 2)]
    expected = copy.deepcopy(modules)
    for x, y in batches:
        nn.MSELoss()(run_modules(expected, x), y).backward()
    with Pipeline(modules, loss=nn.MSELoss(), microbatch_size=2, **layout) as pipe:
        for x, y in batches:
            pipe.step(x, y)
    assert_same_gradients(gradients_of(modules), gradients_of(expected))


@layouts
def test_inputs_that_want_gradients_get_them(layout):
    modules = small_chain(4)
    x = torch.randn(5, 3).double().requires_grad_()
    y = torch.randn(5, 3).double()
    nn.MSELoss()(run_modules(modules, x), y).backward()
    wanted, x.grad = x.grad, None
    with Pipeline(modules, loss=nn.MSELoss(), microbatch_size=2, **layout) as pipe:
        pipe.step(x, y)
    torch.testing.assert_close(x.grad, wanted)


@layouts
def test_several_modules_make_one_stage(layout):
    torch.manual_seed(5)
    modules = [nn.Linear(3, 3) for _ in range(9)]
    chunks = 4 // layout["ranks"]
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    for partition in ("even", "parameters", [3, 1, 4, 1]):
        options = {**layout, "chunks_per_rank": chunks, "partition": partition}
        assert_equal(modules, x, y, nn.MSELoss(), options)


@layouts
def test_lstm_returning_nested_state(layout):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(3, 3, batch_first=True)

        def forward(self, x):
            output, (hidden, cell) = self.lstm(x)
            return output, (hidden.transpose(0, 1), cell.transpose(0, 1))

    class UsesState(nn.Module):
        def forward(self, output, state):
            return output + state[0] - state[1]

    modules = [Recurrent(), UsesState(), Recurrent(), UsesState()]
    assert_equal(modules, torch.randn(5, 4, 3), torch.randn(5, 4, 3), nn.MSELoss(), layout)
