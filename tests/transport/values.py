"""Values that boundaries may hold, and what it means that two are the same."""

from collections import OrderedDict
from functools import partial

import torch
from torch.utils import _pytree as pytree

DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.complex64,
    torch.complex128,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
)


def numbers(*shape, dtype=torch.float32, start=0, requires_grad=False):
    """A tensor of small numbers, all different where the dtype has so many."""
    count = torch.Size(shape).numel()
    plain = torch.arange(start, start + count, dtype=torch.float32).reshape(shape)
    return plain.to(dtype).requires_grad_(requires_grad)


def every_dtype():
    return tuple(numbers(3, dtype=dtype) for dtype in DTYPES)


VALUES = {
    **{str(dtype): partial(numbers, 2, 3, dtype=dtype) for dtype in DTYPES},
    "every dtype": every_dtype,
    "0-dim": lambda: numbers(),
    "zero-size": lambda: numbers(2, 0, 3),
    "zero-size among others": lambda: (numbers(0), numbers(2), numbers(0, 5), numbers(1)),
    "only zero-size": lambda: (numbers(0, dtype=torch.complex128), numbers(0)),
    "needs a gradient": lambda: numbers(2, requires_grad=True),
    "has a graph": lambda: (numbers(2, requires_grad=True) * 2, numbers(3)),
    "transposed": lambda: numbers(3, 4).t(),
    "every second": lambda: numbers(7)[::2],
    "expanded": lambda: numbers(1, 3).expand(4, 3),
    "behind an offset": lambda: numbers(9)[4:],
    "conjugated": lambda: (numbers(3) * (1 + 2j)).conj(),
    "negated": lambda: (numbers(3) * 2j).conj().imag,
    "gradients": lambda: (numbers(3), None, numbers(2, dtype=torch.bfloat16)),
    "no gradient": lambda: (None, None),
    "nothing": lambda: (),
    "none": lambda: None,
    "nested": lambda: {"a": (numbers(2), [numbers(1), None]), "b": {"c": numbers(3)}},
    "ordered": lambda: OrderedDict(z=numbers(1), a=numbers(2)),
    "other values": lambda: (numbers(2), "text", 3, True, 2.5, None, {"k": b"bytes"}),
    "only other values": lambda: ["text", 3],
    "large": lambda: numbers(300, 1000),
}


def assert_same(arrived, sent):
    """Structure, other values, and each tensor's dtype, shape, contents and flag."""
    leaves, structure = pytree.tree_flatten(arrived)
    expected, expected_structure = pytree.tree_flatten(sent)
    assert structure == expected_structure
    for leaf, other in zip(leaves, expected, strict=True):
        assert type(leaf) is type(other)
        if not isinstance(leaf, torch.Tensor):
            assert leaf == other
            continue
        assert (leaf.dtype, leaf.shape) == (other.dtype, other.shape)
        assert leaf.requires_grad == other.requires_grad
        assert leaf.is_leaf
        other = other.detach().resolve_conj().resolve_neg().contiguous()
        both = (t.detach().reshape(-1).view(torch.uint8) for t in (leaf, other))
        assert torch.equal(*both)
