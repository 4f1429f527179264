"""A multi-layer perceptron as a list of one kind of model chunk: a linear layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, final

from torch import Tensor, nn
from torch.nn import functional

from ppframe.errors import ConfigError, Fault

Activation = Literal["relu", "gelu", "silu", "tanh"]

_FUNCTIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "tanh": lambda x: x.tanh(),
}
# One over the root mean square of the activation of a standard normal number.
_GAINS: dict[Activation | None, float] = {
    "relu": math.sqrt(2.0),
    "gelu": 1.5335,
    "silu": 1.6765,
    "tanh": 1.5925,
}


@final
class Linear(nn.Module):
    """A linear layer and, where one is named, an activation after it.

    Weights start out such that a deep stack neither shrinks nor blows up what runs through it;
    torch's own start shrinks it by more than half in each layer.

    Args:
        in_features: width I of the input.
        out_features: width O of the output.
        bias: whether an offset is learned too.
        activation: name of the function applied to each element; None for none.

    Reference:
        He et al., Delving Deep into Rectifiers, 2015, arXiv 1502.01852, section 2.2.
    """

    def __init__(
        self,
        *,
        in_features: int,
        out_features: int,
        bias: bool = True,
        activation: Activation | None = None,
    ) -> None:
        super().__init__()
        sizes = {"in_features": in_features, "out_features": out_features}
        refused = [
            f"`{name}` must be at least 1, but is {size}. Raise it."
            for name, size in sizes.items()
            if size < 1
        ]
        if activation is not None and activation not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            refused.append(
                f"`activation` must be one of {known}, or null, but is `{activation}`. "
                f"Choose one of these."
            )
        if refused:
            raise ConfigError([Fault("", message) for message in refused])
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        gain = _GAINS.get(activation, 1.0)
        nn.init.normal_(self.linear.weight, std=gain / math.sqrt(in_features))
        if bias:
            nn.init.zeros_(self.linear.bias)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """[..., I] to [..., O]."""
        out: Tensor = self.linear(x)
        return out if self.activation is None else _FUNCTIONS[self.activation](out)
