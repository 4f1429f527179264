"""Modules of many kinds, each from width 8 to width 8, for tests of the backward."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WIDTH = 8


def parameter(*shape: int) -> nn.Parameter:
    """A parameter of random numbers that neither blow up nor vanish."""
    return nn.Parameter(torch.randn(shape) / 3)


class Mapped(nn.Module):
    """Parts with names, and a function of them and of the input."""

    def __init__(self, function: Callable[..., Tensor], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def linear() -> nn.Linear:
    return nn.Linear(WIDTH, WIDTH)


def linear_twice() -> nn.Module:
    return Mapped(lambda m, x: m.inner(torch.tanh(m.inner(x))), inner=linear())


def linear_on_input_and_parameter() -> nn.Module:
    return Mapped(lambda m, x: m.inner(x) + m.inner(m.row), inner=linear(), row=parameter(1, WIDTH))


def raw_matrix() -> nn.Module:
    return Mapped(
        lambda m, x: (x @ m.matrix + m.offset) * m.scale,
        matrix=parameter(WIDTH, WIDTH),
        offset=parameter(WIDTH),
        scale=parameter(1),
    )


def chunked_projection() -> nn.Module:
    def attend(m: nn.Module, x: Tensor) -> Tensor:
        query, key, value = (x @ part.t() for part in m.matrix.chunk(3))
        return torch.softmax(query * key, -1) * value

    return Mapped(attend, matrix=parameter(3 * WIDTH, WIDTH))


def stacked_matrices() -> nn.Module:
    return Mapped(
        lambda m, x: torch.tanh(x @ m.matrices[0]) @ m.matrices[1],
        matrices=parameter(2, WIDTH, WIDTH),
    )


def matrix_from_the_left() -> nn.Module:
    return Mapped(lambda m, x: (m.matrix @ x.t()).t(), matrix=parameter(WIDTH, WIDTH))


def scaled_addmm() -> nn.Module:
    return Mapped(
        lambda m, x: torch.addmm(m.offset, x, m.matrix, beta=0.5, alpha=2.0),
        matrix=parameter(WIDTH, WIDTH),
        offset=parameter(WIDTH),
    )


def masked_matrix() -> nn.Module:
    mask = nn.Parameter((torch.rand(WIDTH, WIDTH) > 0.5).float(), requires_grad=False)
    return Mapped(lambda m, x: x @ (m.matrix * m.mask), matrix=parameter(WIDTH, WIDTH), mask=mask)


def low_rank_update() -> nn.Module:
    inner = linear()
    inner.weight.requires_grad_(False)
    return Mapped(
        lambda m, x: m.inner(x) + x @ (m.up @ m.down).t(),
        inner=inner,
        up=parameter(WIDTH, 2),
        down=parameter(2, WIDTH),
    )


def experts() -> nn.Module:
    def mix(m: nn.Module, x: Tensor) -> Tensor:
        each = torch.einsum("nd,edh->enh", x, m.experts)
        return (each * m.router(x).softmax(-1).t()[..., None]).sum(0)

    return Mapped(mix, experts=parameter(2, WIDTH, WIDTH), router=nn.Linear(WIDTH, 2))


def batched_matrices() -> nn.Module:
    def multiply(m: nn.Module, x: Tensor) -> Tensor:
        halves = x.view(-1, 2, WIDTH // 2).transpose(0, 1)
        return torch.bmm(halves, m.matrices).transpose(0, 1).reshape(-1, WIDTH)

    return Mapped(multiply, matrices=parameter(2, WIDTH // 2, WIDTH // 2))


def complex_matrix() -> nn.Module:
    matrix = nn.Parameter(torch.randn(WIDTH, WIDTH, dtype=torch.complex64) / 3)
    return Mapped(lambda m, x: (x.to(torch.complex64) @ m.matrix).abs(), matrix=matrix)


def complex_addmm() -> nn.Module:
    matrix = nn.Parameter(torch.randn(WIDTH, WIDTH, dtype=torch.complex64) / 3)
    offset = nn.Parameter(torch.randn(WIDTH, dtype=torch.complex64))
    return Mapped(
        lambda m, x: torch.addmm(m.offset, x.cfloat(), m.matrix, beta=1 + 1j, alpha=2j).abs(),
        matrix=matrix,
        offset=offset,
    )


def weight_norm() -> nn.Module:
    return nn.Sequential(nn.utils.parametrizations.weight_norm(linear()), nn.ReLU())


def weight_from_the_input() -> nn.Module:
    return Mapped(lambda m, x: x @ (x.t() @ m.inner(x)) / 10, inner=linear())


def transformer_layer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)
    return Mapped(lambda m, x: m.layer(x[:, None].expand(-1, 3, -1))[:, 0], layer=layer)


def convolutions() -> nn.Module:
    def convolve(m: nn.Module, x: Tensor) -> Tensor:
        wide = torch.relu(m.one(x[:, None]))
        return m.grouped(m.back(wide)).sum(1)

    return Mapped(
        convolve,
        one=nn.Conv1d(1, 3, 3, padding=1),
        back=nn.ConvTranspose1d(3, 2, 3, padding=1, bias=False),
        grouped=nn.Conv1d(2, 2, 1, groups=2),
    )


def recurrent() -> nn.Module:
    layer = nn.LSTM(WIDTH, WIDTH, batch_first=True)
    return Mapped(lambda m, x: m.layer(x[:, None].expand(-1, 3, -1))[0][:, -1], layer=layer)


def normalised() -> nn.Module:
    return nn.Sequential(linear(), nn.BatchNorm1d(WIDTH), linear(), nn.LayerNorm(WIDTH))


def embedded() -> nn.Module:
    return Mapped(
        lambda m, x: m.inner(m.table((x.abs() * 3).long()[:, 0] % 5)) + x,
        table=nn.Embedding(5, WIDTH),
        inner=linear(),
    )


def tied_inside() -> nn.Module:
    table = nn.Embedding(WIDTH, WIDTH)
    return Mapped(
        lambda m, x: (m.table(x.argmax(-1)) + x) @ m.table.weight.t(),
        table=table,
    )


def frozen() -> nn.Module:
    return nn.Sequential(linear(), nn.Tanh()).requires_grad_(False)


def frozen_weight() -> nn.Module:
    inner = linear()
    inner.weight.requires_grad_(False)
    return inner


def frozen_offset() -> nn.Module:
    inner = linear()
    inner.bias.requires_grad_(False)
    return inner


def without_parameters() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.GELU())


def constant() -> nn.Module:
    return Mapped(
        lambda m, x: m.inner(m.row).expand(len(x), -1), inner=linear(), row=parameter(1, WIDTH)
    )


def unused_part() -> nn.Module:
    return Mapped(lambda m, x: m.used(x), used=linear(), unused=linear())


def autocast() -> nn.Module:
    def run(m: nn.Module, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return m.two(torch.relu(m.one(x))).float()

    return Mapped(run, one=linear(), two=linear())


def writes_its_input() -> nn.Module:
    return nn.Sequential(nn.ReLU(inplace=True), linear(), nn.ReLU(inplace=True))


def checkpointed() -> nn.Module:
    return Mapped(
        lambda m, x: m.last(checkpoint(m.inner, x, use_reentrant=False)),
        inner=nn.Sequential(linear(), nn.GELU(), linear()),
        last=linear(),
    )


def checkpointed_by_reentry() -> nn.Module:
    return Mapped(
        lambda m, x: m.last(checkpoint(m.inner, x, use_reentrant=True)),
        inner=nn.Sequential(linear(), nn.GELU(), linear()),
        last=linear(),
    )


def packed_by_hooks() -> nn.Module:
    def run(m: nn.Module, x: Tensor) -> Tensor:
        with torch.autograd.graph.save_on_cpu():
            y = functional.gelu(m.packed(x))
        return m.last(y)

    return Mapped(run, packed=linear(), last=linear())


MODULES: dict[str, tuple[Callable[[], nn.Module], int]] = {
    # name: (module, how many of its parameters wait for W)
    "linear": (linear, 2),
    "linear twice": (linear_twice, 2),
    "linear on input and parameter": (linear_on_input_and_parameter, 3),
    "raw matrix": (raw_matrix, 1),
    "chunked projection": (chunked_projection, 1),
    "stacked matrices": (stacked_matrices, 1),
    "matrix from the left": (matrix_from_the_left, 1),
    "scaled addmm": (scaled_addmm, 2),
    "masked matrix": (masked_matrix, 0),
    "low rank update": (low_rank_update, 2),
    "experts": (experts, 3),
    "batched matrices": (batched_matrices, 1),
    "complex matrix": (complex_matrix, 1),
    "complex addmm": (complex_addmm, 2),
    "weight norm": (weight_norm, 0),
    "weight from the input": (weight_from_the_input, 2),
    "transformer layer": (transformer_layer, 7),  # the offset of its projection is added apart
    "convolutions": (convolutions, 5),
    "recurrent": (recurrent, 0),
    "normalised": (normalised, 4),
    "embedded": (embedded, 2),
    "tied inside": (tied_inside, 0),
    "frozen": (frozen, 0),
    "frozen weight": (frozen_weight, 0),
    "frozen offset": (frozen_offset, 1),
    "without parameters": (without_parameters, 0),
    "constant": (constant, 3),
    "unused part": (unused_part, 2),
    "autocast": (autocast, 4),
    "writes its input": (writes_its_input, 2),
    "checkpointed": (checkpointed, 2),
    "checkpointed by reentry": (checkpointed_by_reentry, 0),
    "packed by hooks": (packed_by_hooks, 2),
}
