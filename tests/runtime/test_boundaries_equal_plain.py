"""Whatever travels between stages: gradients are those of plain autograd."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from ppframe import Pipeline
from tests.runtime.layouts import layouts
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


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(3)


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


class Repeats(nn.Module):
    """Gives one tensor twice, its own input again, and a view of a parameter."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        y = self.layer(x)
        return y, y, x, self.layer.weight[0]


class UsesRepeats(nn.Module):
    def __init__(self, inplace):
        super().__init__()
        self.inplace = inplace

    def forward(self, first, second, before, row):
        first = first.mul_(2.0) if self.inplace else first * 2.0
        return first * second.sigmoid() + before * row


@layouts
def test_one_tensor_twice_the_input_itself_and_views_of_parameters(layout):
    modules = [nn.Linear(3, 3), Repeats(), UsesRepeats(inplace=False), nn.Linear(3, 3)]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


class Complex(nn.Module):
    def forward(self, x):
        return {"z": torch.view_as_complex(torch.stack((x, x.sin()), -1)), "none": x[:, :0]}


class Real(nn.Module):
    def forward(self, value):
        return value["z"].abs() + value["none"].sum()


@layouts
def test_complex_and_empty_tensors(layout):
    modules = [nn.Linear(3, 3), Complex(), Real(), nn.Linear(3, 3)]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


class OnlyParameter(nn.Module):
    """Whose output is its parameter; nothing of the input is used."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, x):
        return self.weight.expand(len(x), 3)


@layouts
def test_a_stage_whose_output_does_not_depend_on_its_input(layout):
    modules = [nn.Linear(3, 3), nn.Identity(), OnlyParameter(), nn.Linear(3, 3)]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


class HalfDetached(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        y = self.layer(x)
        return [y, y.detach(), (y > 0)]


class UsesList(nn.Module):
    def forward(self, value):
        y, fixed, positive = value
        return y * fixed + positive


@layouts
def test_floating_tensors_without_gradient_travel_beside_others(layout):
    modules = [nn.Linear(3, 3), HalfDetached(), UsesList(), nn.Linear(3, 3)]
    assert_equal(modules, torch.randn(5, 3), torch.randn(5, 3), nn.MSELoss(), layout)


@layouts
def test_a_stage_that_writes_to_one_of_several_inputs_leaves_its_sender_intact(layout):
    class Sends(nn.Module):
        def forward(self, x):
            y = x.sigmoid()
            return y, y * 1.0, x, x[0]

    modules = [nn.Linear(3, 3), Sends(), UsesRepeats(inplace=True), nn.Linear(3, 3)]
    plain = [*modules[:2], UsesRepeats(inplace=False), modules[3]]
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    options = {"microbatch_size": 4, **layout}
    actual = pipeline_step(modules, x, y, nn.MSELoss(), **options)
    assert_same_answer(actual, plain_step(plain, x, y, nn.MSELoss()))
    again = Pipeline(modules, loss=nn.MSELoss(), **options)
    again.step(x, y)
    first = {name: p.grad.clone() for name, p in again.named_parameters()}
    again.step(x, y)
    for name, parameter in again.named_parameters():
        torch.testing.assert_close(parameter.grad, 2 * first[name])
