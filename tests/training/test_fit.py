"""What doesn't fit is found on one microbatch, before anything is trained."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ppframe.data import Batch
from ppframe.errors import ConfigError
from ppframe.training.fit import Fitted, misfit

TOKENS = torch.tensor([[3, 9], [0, 4]])
FLOATS = torch.zeros(2, 4)


def found(*modules: nn.Module, inputs=FLOATS, targets=FLOATS, loss=None) -> dict[str, str]:
    names = [f"chunk {index}" for index in range(len(modules))]
    batch = Batch(inputs, targets)
    meta = [module.to("meta") for module in modules]
    faults = misfit(Fitted(meta, names, batch, loss or nn.MSELoss()))
    return {fault.path: fault.message for fault in faults}


def classes_last(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, -2), target.flatten())


def test_what_fits_has_no_misfit():
    assert found(nn.Linear(4, 5), nn.Linear(5, 4)) == {}
    model = (nn.Embedding(10, 6), nn.Linear(6, 10))
    assert found(*model, inputs=TOKENS, targets=TOKENS, loss=classes_last) == {}


def test_a_shape_that_does_not_fit_names_its_module_and_what_it_gets():
    faults = found(nn.Linear(4, 5), nn.Linear(6, 4))
    assert list(faults) == ["chunk 1"]
    assert "must take what chunk 0 gives, float32 [2, 5]" in faults["chunk 1"]


def test_an_embedding_must_have_an_entry_for_every_number_of_the_data():
    inner = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 10))
    faults = found(inner, inputs=TOKENS, targets=TOKENS, loss=classes_last)
    assert list(faults) == ["chunk 0"]
    assert (
        "must embed the numbers 0 to 9, which the data has, but has 9 vectors" in faults["chunk 0"]
    )
    assert not inner[0]._forward_pre_hooks


def test_every_target_must_be_a_class_of_the_output():
    model = (nn.Embedding(10, 6), nn.Linear(6, 9))
    faults = found(*model, inputs=TOKENS, targets=TOKENS, loss=classes_last)
    assert list(faults) == ["loss"]
    assert (
        "chunk 1 gives, float32 [2, 2, 9], and targets, int64 [2, 2] from 0 to 9" in faults["loss"]
    )


def test_a_loss_is_tried_without_memory_where_the_output_is_large():
    wide = nn.Linear(4, 1 << 24)
    assert found(wide, targets=torch.zeros(2, 1)) == {}
    assert list(found(wide, targets=torch.zeros(3, 1))) == ["loss"]


class Raising(nn.Module):
    """Raises what it is given."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def forward(self, x):
        raise self.error


@pytest.mark.parametrize(
    "error",
    [NotImplementedError(), RuntimeError("Cannot copy out of meta tensor"), OSError("no CUDA")],
)
def test_what_only_real_numbers_or_a_device_can_tell_is_left_to_them(error):
    assert found(Raising(error)) == {}


def test_an_error_names_the_line_that_raised_it():
    message = found(Raising(ValueError("no such luck")))["chunk 0"]
    assert "but raised ValueError: no such luck (" in message
    assert "test_fit.py, line " in message
    assert "SystemExit: 0" in found(Raising(SystemExit(0)))["chunk 0"]


def test_a_fault_that_knows_its_key_keeps_it():
    assert found(Raising(ConfigError("must be 4.", path="model.dim"))) == {
        "model.dim": "must be 4."
    }
