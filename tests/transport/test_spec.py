import pytest
import torch

from ppframe.transport.spec import ALIGNMENT, Layout, describe, from_bytes, to_bytes
from tests.transport.values import VALUES, assert_same

CPU = torch.device("cpu")


def there_and_back(value):
    spec, tensors = describe(value)
    layout = Layout(spec)
    buffer = layout.new_buffer(layout.capacity)
    layout.pack(tensors, buffer)
    return layout.unpack(buffer, CPU)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_the_same_after_packing(name):
    value = VALUES[name]()
    assert_same(there_and_back(value), value)


@pytest.mark.parametrize("name", VALUES)
def test_a_spec_is_the_same_in_another_process(name):
    spec, _ = describe(VALUES[name]())
    assert from_bytes(to_bytes(spec)) == spec


@pytest.mark.parametrize("name", VALUES)
def test_the_flat_form_holds_the_same_bytes_as_the_packed_one(name):
    spec, tensors = describe(VALUES[name]())
    layout = Layout(spec)
    flat = layout.flat(tensors)
    assert flat.is_contiguous()
    room = torch.zeros(layout.capacity, dtype=torch.uint8)
    raw = flat.reshape(-1).view(torch.uint8)
    room[: len(raw)] = raw
    assert_same(layout.unpack(room, CPU), VALUES[name]())


def test_a_lone_contiguous_tensor_is_not_copied():
    tensor = torch.ones(3, 4)
    spec, tensors = describe(tensor)
    assert Layout(spec).flat(tensors).data_ptr() == tensor.data_ptr()


def test_tensors_are_aligned_and_share_one_buffer():
    value = (torch.ones(3, dtype=torch.bool), torch.ones(5), torch.ones(2, dtype=torch.int8))
    spec, tensors = describe(value)
    layout = Layout(spec)
    buffer = layout.new_buffer(layout.capacity)
    layout.pack(tensors, buffer)
    offsets = [t.data_ptr() - buffer.data_ptr() for t in layout.unpack(buffer, CPU)]
    assert offsets == [0, ALIGNMENT, 2 * ALIGNMENT]
    assert layout.capacity == 3 * ALIGNMENT


def test_writing_to_one_tensor_is_no_change_of_another():
    weight = torch.ones(2, requires_grad=True)
    read, written = there_and_back((torch.ones(2), torch.ones(2)))
    loss = (weight * read).sum()
    written.add_(1)
    loss.backward()
    assert weight.grad.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_versions_are_counted_apart(dtype):
    layout = Layout(describe((torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype)))[0])
    one, other = layout.unpack(layout.new_buffer(layout.capacity), CPU)
    one.zero_()
    assert (one._version, other._version) == (1, 0)


@pytest.mark.parametrize("value", [torch.ones(2), (torch.ones(2), torch.ones(2))])
def test_what_arrives_counts_as_never_written_to(value):
    layout = Layout(describe(value)[0])
    arrived = layout.unpack(layout.new_buffer(layout.capacity), CPU)
    assert all(t._version == 0 for t in (arrived if isinstance(arrived, tuple) else (arrived,)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2), torch.ones(2, 1)),
        (torch.ones(2), torch.ones(2).double()),
        (torch.ones(2), torch.ones(2, requires_grad=True)),
        (torch.ones(2), (torch.ones(2),)),
        ((torch.ones(2), None), (None, torch.ones(2))),
        ((torch.ones(2),), [torch.ones(2)]),
        ({"a": 1}, {"a": True}),
        ({"a": 0.0}, {"a": -0.0}),
        ({"a": torch.ones(1)}, {"b": torch.ones(1)}),
    ],
)
def test_specs_differ(one, other):
    assert describe(one)[0] != describe(other)[0]


def test_contents_are_no_part_of_the_spec():
    assert describe((torch.ones(2), "x"))[0] == describe((torch.zeros(2), "x"))[0]


@pytest.mark.parametrize(
    ("value", "phrase"),
    [
        (torch.ones(2).to_sparse(), "must be dense, but is torch.sparse_coo"),
        ({"f": lambda: None}, "function must be one that can be pickled"),
    ],
)
def test_what_cannot_travel_is_a_type_error(value, phrase):
    with pytest.raises(TypeError, match=phrase):
        describe(value)
