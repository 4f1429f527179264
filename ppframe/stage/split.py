"""Splitting the backward of a stage: gradients for its input at once, for its weights later.

A product has two gradients, each a product of its own. The pipeline waits for one of them, the
input's; the weight's can be computed whenever there is time. The graph that autograd recorded is
taken as it is, whatever modules made it:

::

    B    leaf ◀── mm ◀── gelu ◀── mm ◀── gradient of the output     autograd, less w1 and w2
                  ┊               ┊
    W             ▼ w1            ▼ w2                              operand · gradient, both kept

B finds the products whose weight is a parameter, has autograd leave those gradients out, and keeps
what they are made of: the other operand and the gradient of the output. Everything else it runs
through is done and freed, small weights such as those of a norm included. W multiplies and hands
the products to autograd, so a parameter's hooks see what they see without a split: one gradient for
each microbatch, the sum over all uses.

A weight stays with B where leaving it out would not be exact or would cost another forward: where
its parameter is reached some other way too, where it is computed from several parameters, and where
hooks packed the operand, as checkpointed modules do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import final

from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from ppframe.stage.autograd import Root, run_engine
from ppframe.stage.products import COLLECT, Weight, weights_of

# Beyond these, gradients go to autograd one parameter at a time: memory that was just freed is in
# the caches, and a stage of wide layers takes a sixth less time than with all gradients at once.
_BYTES_AT_ONCE = 1 << 18
_REFUSES = "CheckpointFunctionBackward"  # runs a backward of its own, only in a full one


@final
class Gradient:
    """Takes the gradient of a node's output when autograd comes to the node."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Tensor | None = None

    def __call__(self, gradients: tuple[Tensor | None, ...]) -> None:
        """Take it, and change nothing."""
        self.value = gradients[0]


WeightWork = list[tuple[Weight, Gradient]]
"""What W has to do for a microbatch."""


def backward_input(
    roots: Sequence[Tensor], seeds: Sequence[Tensor], leaves: Collection[Tensor | None]
) -> WeightWork:
    """Run the backward from `roots`, less the gradients that can wait.

    Args:
        roots: where to start; their graph is freed.
        seeds: a gradient for each root.
        leaves: tensors that other stages gave; their gradients can't wait.

    Returns:
        the rest, for `backward_weight`; empty where nothing could wait and all is done.
    """
    ends, products = _taken_apart(roots, leaves)
    targets = [GradientEdge(end, 0) for end in ends]
    work: WeightWork = []
    for node, weights in products:
        waiting = [weight for weight in weights if weight.end not in ends]
        if waiting:
            gradient = Gradient()
            node.register_prehook(gradient)
            targets.append(GradientEdge(node, 0))
            work += [(weight, gradient) for weight in waiting]
    run_engine(roots, seeds, targets if work else ())
    return work


def backward_weight(work: WeightWork) -> None:
    """Do what `backward_input` left; the list is emptied on the way.

    All gradients of a parameter go to autograd together; those of small parameters in one go.
    """
    by_parameter: dict[Node, WeightWork] = {}
    for part in work:
        by_parameter.setdefault(part[0].end, []).append(part)
    work.clear()
    roots: list[Root] = []
    seeds: list[Tensor] = []
    num_bytes = 0
    while by_parameter:
        _, parts = by_parameter.popitem()
        for weight, gradient in parts:
            if gradient.value is not None:
                roots.append(weight.edge)
                seeds.append(weight.gradient(gradient.value))
                num_bytes += seeds[-1].nbytes
        if roots and (num_bytes > _BYTES_AT_ONCE or not by_parameter):
            run_engine(roots, seeds)
            roots, seeds, num_bytes = [], [], 0


def num_waiting(roots: Sequence[Tensor], leaves: Collection[Tensor | None]) -> int:
    """How many parameters' gradients `backward_input` would leave for W; runs nothing."""
    ends, products = _taken_apart(roots, leaves)
    return len({weight.end for _, weights in products for weight in weights} - ends)


def _taken_apart(
    roots: Sequence[Tensor], leaves: Collection[Tensor | None]
) -> tuple[set[Node], list[tuple[Node, list[Weight]]]]:
    """The nodes that collect gradients in B, and the products with weights that may wait.

    A weight may wait if B comes to its parameter on no other way, that is, if the node that
    collects it is not among the first.
    """
    given = {get_gradient_edge(leaf).node for leaf in leaves if leaf is not None}
    seen = {get_gradient_edge(root).node for root in roots}
    stack = list(seen)
    ends: set[Node] = set()
    products: list[tuple[Node, list[Weight]]] = []
    while stack:
        node = stack.pop()
        name = node.name()
        if name == COLLECT:
            ends.add(node)
            continue
        if name.endswith(_REFUSES):
            return set(), []
        weights = weights_of(node, given)
        waiting: set[tuple[object, int]] = {weight.edge[:2] for weight in weights}
        if weights:
            products.append((node, weights))
        for edge in node.next_functions:
            following = edge[0]
            if following is not None and following not in seen and edge not in waiting:
                seen.add(following)
                stack.append(following)
    return ends, products
