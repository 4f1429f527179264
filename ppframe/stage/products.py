"""Graph nodes whose weight gradient is a product of its own, and how it is computed.

For each kind of node: which of its inputs can be a weight, what else that weight's gradient is made
of, and the product, in the memory layout of autograd's own formula, so that the gradient is the
same bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple, final

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

Product = Callable[..., Tensor]
"""(other operands, gradient of the output) → gradient of the weight."""

COLLECT = "torch::autograd::AccumulateGrad"
"""Name of the nodes that add to a tensor's `.grad`."""

# What may stand between a product and its parameter: views and casts. They keep no tensor and
# take next to no time.
_VIEWS = """
    Alias AsStrided Clone Expand Permute ReshapeAlias Select Slice Split SplitWithSizes Squeeze T
    ToCopy Transpose Unbind UnsafeView Unsqueeze View
"""
_SEEN_THROUGH = {f"{name}Backward{version}" for name in _VIEWS.split() for version in (0, 1)}

_Edge = tuple[Node | None, int]


@final
class Weight(NamedTuple):
    """An input of a product node whose gradient can be left for later.

    Args:
        edge: where its gradient enters the graph.
        end: the node that adds it to the parameter's `.grad`.
        others: what its gradient is made of beside the output's: the other operand, detached.
        versions: how often each of them had been written to when autograd saved it.
        product: how.
    """

    edge: GradientEdge
    end: Node
    others: tuple[Tensor, ...]
    versions: tuple[int, ...]
    product: Product

    def gradient(self, of_output: Tensor) -> Tensor:
        """The weight's gradient.

        Raises:
            RuntimeError: an operand was written to since the backward for the input.
        """
        if tuple(other._version for other in self.others) != self.versions:
            raise RuntimeError(
                "a tensor needed for the gradient of a weight must stay as it was until W, but was "
                "written to in place after B. Write to a copy, or use a schedule without W."
            )
        return self.product(*self.others, of_output)


def weights_of(node: Node, given: Collection[Node]) -> list[Weight]:
    """The weights of a node whose gradients can be left for later; mostly there are none.

    An offset comes with a weight only: alone it isn't worth keeping a gradient for.

    Args:
        node: any node of autograd's graph.
        given: nodes that collect gradients of tensors which other stages gave: no parameters.
    """
    find = _FINDERS.get(node.name())
    return [] if find is None else find(node, given)


def _addmm(node: Any, given: Collection[Node]) -> list[Weight]:
    offset, left, right = node.next_functions
    found = _factors(
        node, (left, right), ("mat1", "mat2"), given, scale=node._saved_alpha.conjugate()
    )
    return found + _offset(offset, given, node._saved_beta.conjugate()) if found else found


def _mm(node: Any, given: Collection[Node]) -> list[Weight]:
    return _factors(node, node.next_functions, ("self", "mat2"), given, scale=1)


def _factors(
    node: Any,
    edges: Sequence[_Edge],
    names: tuple[str, str],
    given: Collection[Node],
    *,
    scale: float,
) -> list[Weight]:
    """The weights among the two operands of a product of matrices."""
    found = []
    left, right = edges
    if (end := _end_of(right, given)) and _is_plain(node, names[0]):
        transposed = _is_transposed(node, names[1])
        product = partial(_right_gradient, transposed=transposed, scale=scale)
        found.append(_weight(right, end, (_saved(node, names[0]),), product))
    if (end := _end_of(left, given)) and _is_plain(node, names[1]):
        transposed = _is_transposed(node, names[0])
        product = partial(_left_gradient, transposed=transposed, scale=scale)
        found.append(_weight(left, end, (_saved(node, names[1]),), product))
    return found


def _right_gradient(left: Tensor, gradient: Tensor, *, transposed: bool, scale: float) -> Tensor:
    """Of `right` in left · right; a transposed one gets a transposed gradient."""
    if transposed:
        return _scaled(gradient.t().mm(left.conj()).t(), scale)
    return _scaled(left.t().conj().mm(gradient), scale)


def _left_gradient(right: Tensor, gradient: Tensor, *, transposed: bool, scale: float) -> Tensor:
    """Of `left` in left · right."""
    if transposed:
        return _scaled(right.conj().mm(gradient.t()).t(), scale)
    return _scaled(gradient.mm(right.t().conj()), scale)


def _bmm(node: Any, given: Collection[Node]) -> list[Weight]:
    left, right = node.next_functions
    found = []
    if (end := _end_of(right, given)) and _is_plain(node, "self"):
        found.append(_weight(right, end, (_saved(node, "self"),), _batched_right))
    if (end := _end_of(left, given)) and _is_plain(node, "mat2"):
        found.append(_weight(left, end, (_saved(node, "mat2"),), _batched_left))
    return found


def _batched_right(left: Tensor, gradient: Tensor) -> Tensor:
    return left.transpose(1, 2).conj().bmm(gradient)


def _batched_left(right: Tensor, gradient: Tensor) -> Tensor:
    return gradient.bmm(right.transpose(1, 2).conj())


def _convolution(node: Any, given: Collection[Node]) -> list[Weight]:
    _, weight, offset = node.next_functions
    end = _end_of(weight, given)
    if end is None or not (_is_plain(node, "input") and _is_plain(node, "weight")):
        return []
    settings = (
        node._saved_bias_sym_sizes_opt,
        node._saved_stride,
        node._saved_padding,
        node._saved_dilation,
        node._saved_transposed,
        node._saved_output_padding,
        node._saved_groups,
    )
    operands = (_saved(node, "input"), _saved(node, "weight"))
    found = [_weight(weight, end, operands, partial(_kernel_gradient, settings=settings))]
    if end := _end_of(offset, given):
        found.append(_weight(offset, end, (), _channel_sums))
    return found


def _kernel_gradient(
    data: Tensor, weight: Tensor, gradient: Tensor, *, settings: tuple[Any, ...]
) -> Tensor:
    _, kernel, _ = torch.ops.aten.convolution_backward(
        gradient, data, weight, *settings, (False, True, False)
    )
    assert isinstance(kernel, Tensor)
    return kernel


def _channel_sums(gradient: Tensor) -> Tensor:
    """Of a convolution's offset: the channels stand on dim 1."""
    return gradient.sum([dim for dim in range(gradient.dim()) if dim != 1])


def _offset(edge: _Edge, given: Collection[Node], scale: float) -> list[Weight]:
    """The offset of a product of matrices; autograd sums its gradient to the offset's shape."""
    end = _end_of(edge, given)
    if end is None:
        return []
    return [_weight(edge, end, (), partial(_scaled, scale=scale))]


def _scaled(tensor: Tensor, scale: float) -> Tensor:
    return tensor if scale == 1 else tensor * scale


def _weight(edge: _Edge, end: Node, others: tuple[Tensor, ...], product: Product) -> Weight:
    node, output = edge
    assert node is not None
    versions = tuple(other._version for other in others)
    return Weight(GradientEdge(node, output), end, others, versions, product)


def _end_of(edge: _Edge, given: Collection[Node]) -> Node | None:
    """The node of a parameter that collects what enters at an edge; None if it is no parameter."""
    node = edge[0]
    while node is not None and node.name() in _SEEN_THROUGH:
        (node, _), *others = node.next_functions
        if others:
            return None
    is_parameter = node is not None and node.name() == COLLECT and node not in given
    return node if is_parameter else None


def _is_plain(node: Any, name: str) -> bool:
    """Whether a saved tensor is kept as it is: not packed by hooks, which may run a forward."""
    raw = getattr(node, f"_raw_saved_{name}")
    return getattr(raw, "unpack_hook", raw) is None


def _saved(node: Any, name: str) -> Tensor:
    """A saved tensor without its own graph, which would be kept alive."""
    tensor = getattr(node, f"_saved_{name}")
    assert isinstance(tensor, Tensor)
    return tensor.detach()


def _is_transposed(node: Any, name: str) -> bool:
    """Whether a matrix lies in memory column after column."""
    rows = getattr(node, f"_saved_{name}_sym_sizes")[0]
    return tuple(getattr(node, f"_saved_{name}_sym_strides")) == (1, rows)


_FINDERS: dict[str, Callable[[Any, Collection[Node]], list[Weight]]] = {
    "AddmmBackward0": _addmm,
    "MmBackward0": _mm,
    "BmmBackward0": _bmm,
    "ConvolutionBackward0": _convolution,
}
