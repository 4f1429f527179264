"""Optimizers: from options to a factory, which the trainer calls once for each rank.

A factory takes named parameters, so that groups can be formed by name and the optimizer's state
keeps the names. It always makes groups, so that a rank without parameters is no special case.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ppframe.errors import ConfigError, Fault
from ppframe.registry import register

NamedParameter = tuple[str, nn.Parameter]
OptimizerFactory = Callable[[Iterable[NamedParameter]], Optimizer]


@register("optimizer", "sgd")
def sgd(
    *,
    lr: float,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    decay_biases_and_norms: bool = True,
) -> OptimizerFactory:
    """Stochastic gradient descent.

    Args:
        lr: base learning rate, which the `lr_schedule` multiplies.
        momentum: share of the last update that is kept, in [0, 1).
        nesterov: look ahead by the momentum; needs momentum.
        weight_decay: L2 penalty.
        decay_biases_and_norms: whether the penalty also falls on parameters of fewer than two
            dimensions, which are biases and the weights of norms.

    Raises:
        ConfigError: an option is out of range.
    """
    faults = [*_below_zero(lr=lr, weight_decay=weight_decay), *_no_share(momentum=momentum)]
    if nesterov and momentum == 0.0:
        text = "must be above 0 with `nesterov`, but is 0.0. Set 0.9, or switch `nesterov` off."
        faults.append(Fault("optimizer.momentum", text))
    _require_none(faults)

    def make(parameters: Iterable[NamedParameter]) -> Optimizer:
        groups = decay_groups(parameters, weight_decay, everything=decay_biases_and_norms)
        return torch.optim.SGD(groups, lr=lr, momentum=momentum, nesterov=nesterov)

    return make


@register("optimizer", "adamw")
def adamw(
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    decay_biases_and_norms: bool = False,
) -> OptimizerFactory:
    """Adam with decoupled weight decay.

    Args:
        lr: base learning rate, which the `lr_schedule` multiplies.
        betas: decay of the running means of the gradient and of its square, each in [0, 1).
        eps: added to the denominator.
        weight_decay: share of a weight that is taken off in each step, in multiples of lr.
        decay_biases_and_norms: whether that also happens to parameters of fewer than two
            dimensions, which are biases and the weights of norms.

    Raises:
        ConfigError: an option is out of range.

    Reference:
        Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2017, arXiv 1711.05101.
    """
    first, second = betas
    positive = _below_zero(lr=lr, eps=eps, weight_decay=weight_decay)
    _require_none([*positive, *_no_share(betas=first), *_no_share(betas=second)])

    def make(parameters: Iterable[NamedParameter]) -> Optimizer:
        groups = decay_groups(parameters, weight_decay, everything=decay_biases_and_norms)
        return torch.optim.AdamW(groups, lr=lr, betas=(first, second), eps=eps)

    return make


def optimizer_from_class(cls: type[Optimizer], options: Mapping[str, Any]) -> OptimizerFactory:
    """A factory for any optimizer class in torch's form, all parameters in one group.

    The options, and a step, are tried once on a stand-in parameter, so that bad ones show before
    the run.

    Args:
        cls: takes parameter groups, then options by keyword.
        options: what to pass; lists and other sequences become tuples, at every depth.

    Raises:
        ConfigError: no optimizer class, or it refuses the options; or its step needs a closure or
            sparse gradients.
    """
    if not (inspect.isclass(cls) and issubclass(cls, Optimizer)):
        raise ConfigError(
            f"must be a subclass of torch.optim.Optimizer, but is {cls!r}. "
            f"Name a class, such as torch.optim.RMSprop.",
            path="optimizer._target_",
        )
    plain = {name: _plain(value) for name, value in options.items()}

    def make(parameters: Iterable[NamedParameter]) -> Optimizer:
        return cls([{"params": list(parameters)}], **plain)

    _require_none(list(_below_zero(lr=plain["lr"])) if isinstance(plain.get("lr"), float) else [])
    stand_in = nn.Parameter(torch.zeros(1, 1))
    try:
        optimizer = make([("stand_in", stand_in)])
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"must be options that {cls.__name__} takes, but are {plain} ({error}). Correct them.",
            path="optimizer",
        ) from error
    _try_a_step(optimizer, stand_in)
    return make


def _try_a_step(optimizer: Optimizer, stand_in: nn.Parameter) -> None:
    """Refuse optimizers that need more of a step than gradients, or other ones than there are."""
    stand_in.grad = torch.ones_like(stand_in)
    try:
        optimizer.step()
    except (RuntimeError, TypeError) as error:
        raise ConfigError(
            "must be an optimizer whose `step` takes no argument and dense gradients, but that of "
            f"{type(optimizer).__name__} raised {type(error).__name__}: {error}. Choose another.",
            path="optimizer._target_",
        ) from error
    except AssertionError:
        pass  # of options for devices that the stand-in isn't on, such as `capturable`


def decay_groups(
    parameters: Iterable[NamedParameter], weight_decay: float, *, everything: bool
) -> list[dict[str, Any]]:
    """Parameter groups: those that weight decay falls on, and those that it spares.

    Args:
        parameters: names and parameters of one rank.
        weight_decay: for the first group; the second has 0.
        everything: spare none.

    Returns:
        one group with `everything`, else up to two; an empty one, which torch can't have beside one
        with names, only where there are no parameters at all.
    """
    named = list(parameters)
    if everything:
        return [{"params": named, "weight_decay": weight_decay}]
    decayed = [(name, parameter) for name, parameter in named if parameter.ndim >= 2]
    spared = [(name, parameter) for name, parameter in named if parameter.ndim < 2]
    groups: list[dict[str, Any]] = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": spared, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]] or groups[:1]


def _plain(value: Any) -> Any:
    """The value with plain dicts and tuples for whatever mappings and sequences it holds."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, torch.Tensor)):
        return tuple(_plain(entry) for entry in value)
    return value


def _below_zero(**options: float) -> Iterator[Fault]:
    for name, value in options.items():
        if not 0.0 <= value < math.inf:
            message = f"must be finite and at least 0, but is {value}. Change it."
            yield Fault(f"optimizer.{name}", message)


def _no_share(**options: float) -> Iterator[Fault]:
    for name, value in options.items():
        if not 0.0 <= value < 1.0:
            message = f"must lie in [0, 1), but is {value}. 0.9 is usual."
            yield Fault(f"optimizer.{name}", message)


def _require_none(faults: Sequence[Fault]) -> None:
    if faults:
        raise ConfigError(faults)
