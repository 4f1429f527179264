import logging

import pytest
import torch

from ppframe.errors import ConfigError
from ppframe.stage.microbatch import (
    ArgumentSplitter,
    Replicate,
    Split,
    batch_size_of,
    sizes_by_count,
    sizes_by_limit,
    split_batch,
)


def test_ten_samples_by_four_give_four_four_two():
    assert sizes_by_limit(10, 4) == (4, 4, 2)
    assert sizes_by_limit(8, 4) == (4, 4)
    assert sizes_by_limit(3, 4) == (3,)


def test_ten_samples_in_four_parts_differ_by_at_most_one():
    assert sizes_by_count(10, 4) == (3, 3, 2, 2)


def test_more_parts_than_samples_are_refused():
    with pytest.raises(ConfigError, match=r"holds 2 \(microbatches 3\)"):
        sizes_by_count(2, 3)


def test_nested_inputs_are_cut_and_other_values_go_to_all():
    x = torch.arange(10.0)
    parts = split_batch({"x": x, "pair": (x, "name"), "scalar": torch.tensor(3.0)}, (4, 4, 2), "i")
    assert [part["x"].tolist() for part in parts] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert parts[2]["pair"][0].tolist() == [8, 9]
    assert {part["pair"][1] for part in parts} == {"name"}
    assert [part["scalar"].item() for part in parts] == [3.0] * 3


def test_cutting_copies_nothing():
    x = torch.zeros(6, 2)
    parts = split_batch(x, (4, 2), "inputs")
    assert parts[0].data_ptr() == x.data_ptr()


def test_an_input_of_another_size_is_refused():
    with pytest.raises(ConfigError, match=r"size 4 on dim 0.*\[3, 2\]") as error:
        split_batch((torch.zeros(4, 2), torch.zeros(3, 2)), (2, 2), "inputs")
    assert error.value.path == "inputs"


@pytest.mark.parametrize("inputs", [torch.zeros(0, 3), torch.tensor(1.0), {"x": 1}, ()])
def test_a_batch_without_samples_is_refused(inputs):
    with pytest.raises(ConfigError, match="must hold"):
        batch_size_of(inputs)


def test_by_default_only_what_has_the_batch_size_is_cut():
    splitter = ArgumentSplitter({})
    table, mask, other = torch.zeros(7, 2), torch.arange(4), object()
    parts = splitter.split(
        {"table": table, "nested": {"mask": mask, "k": 3}, "scalar": torch.tensor(2), "o": other},
        (2, 2),
    )
    assert parts[1]["table"] is table
    assert parts[1]["nested"]["mask"].tolist() == [2, 3]
    assert parts[0]["nested"]["k"] == 3
    assert parts[0]["scalar"].item() == 2
    assert parts[1]["o"] is other


def test_a_cut_without_a_rule_is_said_once(caplog):
    splitter = ArgumentSplitter({"known": Split()})
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            splitter.split({"table": torch.zeros(4, 3), "known": torch.zeros(4)}, (2, 2))
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1
    assert "`table`" in messages[0]
    assert "Replicate()" in messages[0]


def test_rules_cut_another_dim_or_replicate():
    splitter = ArgumentSplitter({"mask": Split(dim=1), "table": Replicate()})
    mask, table = torch.arange(8).reshape(2, 4), torch.zeros(4, 3)
    parts = splitter.split({"mask": mask, "table": table}, (3, 1))
    assert parts[0]["mask"].tolist() == [[0, 1, 2], [4, 5, 6]]
    assert parts[1]["mask"].tolist() == [[3], [7]]
    assert parts[1]["table"] is table


@pytest.mark.parametrize("dim", [0, 2, -3])
def test_a_rule_that_does_not_fit_the_tensor_is_refused(dim):
    splitter = ArgumentSplitter({"mask": Split(dim)})
    with pytest.raises(ConfigError, match="batch's size 4") as error:
        splitter.split({"mask": torch.zeros(2, 4)}, (2, 2))
    assert error.value.path == "argument_rules.mask"
