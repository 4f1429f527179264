import torch

from ppframe.stage import boundary


def test_tensors_are_listed_depth_first():
    a, b, c = (torch.tensor(float(i)) for i in range(3))
    value = {"x": a, "y": (b, [c, "text", None])}
    assert [t.item() for t in boundary.tensors_of(value)] == [0.0, 1.0, 2.0]


def test_mapping_keeps_the_structure_and_other_values():
    value = (torch.ones(2), {"k": [torch.ones(1), 7]})
    doubled = boundary.map_tensors(lambda t: t * 2, value)
    assert doubled[0].tolist() == [2.0, 2.0]
    assert doubled[1]["k"][0].tolist() == [2.0]
    assert doubled[1]["k"][1] == 7


def test_outputs_join_along_the_samples():
    table = torch.arange(3.0)
    parts = [
        {"y": torch.full((size, 2), float(i)), "aux": torch.tensor(float(i)), "t": table, "n": 5}
        for i, size in enumerate((2, 1))
    ]
    joined = boundary.join(parts, (2, 1))
    assert joined["y"].tolist() == [[0, 0], [0, 0], [1, 1]]
    assert joined["aux"].tolist() == [0, 1]
    assert joined["t"] is table
    assert joined["n"] == 5


def test_what_differs_and_has_no_samples_is_given_by_microbatch():
    parts = [torch.zeros(5), torch.ones(5)]
    joined = boundary.join(parts, (2, 1))
    assert [t.tolist() for t in joined] == [[0.0] * 5, [1.0] * 5]
