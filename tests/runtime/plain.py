"""The unsplit model, in plain torch: what every pipeline must equal."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ppframe import Pipeline


@dataclass
class Answer:
    loss: Tensor
    gradients: dict[str, Tensor | None]
    state: dict[str, Tensor]


def run_modules(modules: Sequence[nn.Module], value: Any, **arguments: Any) -> Any:
    """One module after the other; a tuple is passed on as positional arguments."""
    for module in modules:
        names = module.forward.__code__.co_varnames[: module.forward.__code__.co_argcount]
        named = {name: given for name, given in arguments.items() if name in names}
        value = module(*value, **named) if isinstance(value, tuple) else module(value, **named)
    return value


def gradients_of(modules: Sequence[nn.Module]) -> dict[str, Tensor | None]:
    named = nn.Sequential(*modules).named_parameters()
    return {name: None if p.grad is None else p.grad.clone() for name, p in named}


def plain_step(modules: Sequence[nn.Module], inputs: Any, targets: Any, loss: Any) -> Answer:
    """Loss and gradients of the whole batch at once; works on a copy of the modules."""
    modules = copy.deepcopy(list(modules))
    value = loss(run_modules(modules, inputs), targets)
    if value.requires_grad:
        value.backward()
    return Answer(value.detach(), gradients_of(modules), nn.Sequential(*modules).state_dict())


def pipeline_step(
    modules: Sequence[nn.Module], inputs: Any, targets: Any, loss: Any, **options: Any
) -> Answer:
    """The same through a pipeline, on another copy."""
    modules = copy.deepcopy(list(modules))
    with Pipeline(modules, loss=loss, **options) as pipe:
        result = pipe.step(inputs, targets)
    return Answer(result.loss, gradients_of(modules), nn.Sequential(*modules).state_dict())


def assert_same_gradients(actual: dict[str, Tensor | None], expected: dict[str, Tensor | None]):
    assert actual.keys() == expected.keys()
    for name, wanted in expected.items():
        if wanted is None:
            assert actual[name] is None, f"{name} must have no gradient"
        else:
            assert actual[name] is not None, f"{name} has no gradient"
            torch.testing.assert_close(
                actual[name], wanted, msg=lambda text, name=name: f"{name}: {text}"
            )


def assert_same_answer(actual: Answer, expected: Answer) -> None:
    torch.testing.assert_close(actual.loss, expected.loss)
    assert_same_gradients(actual.gradients, expected.gradients)
    for name, wanted in expected.state.items():
        torch.testing.assert_close(
            actual.state[name], wanted, msg=lambda text, name=name: f"{name}: {text}"
        )


def assert_equal(
    modules: Sequence[nn.Module],
    inputs: Any,
    targets: Any,
    loss: Any,
    layout: dict[str, Any],
    microbatch_size: int | None = 2,
) -> None:
    """One step of the pipeline gives what the plain model gives."""
    actual = pipeline_step(
        modules, inputs, targets, loss, microbatch_size=microbatch_size, **layout
    )
    assert_same_answer(actual, plain_step(modules, inputs, targets, loss))


def small_chain(num_modules: int, width: int = 3) -> list[nn.Module]:
    """Double-precision layers, one a stage."""
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(width, width), nn.Tanh()).double() for _ in range(num_modules)]
