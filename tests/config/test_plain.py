"""From a composed configuration to plain data."""

from __future__ import annotations

from omegaconf import DictConfig, OmegaConf

from ppframe.config.plain import MISSING, to_plain, to_yaml
from tests.launching import by_path


def read(text: str) -> DictConfig:
    config = OmegaConf.create(text)
    assert isinstance(config, DictConfig)
    return config


def test_interpolations_are_resolved_and_lists_are_lists() -> None:
    composed = to_plain({"a": 3, "b": {"c": "${a}", "d": ["${b.c}", None, True]}})
    assert composed.tree == {"a": 3, "b": {"c": 3, "d": [3, None, True]}}
    assert type(composed.tree["b"]["d"]) is list
    assert composed.faults == ()


def test_every_missing_value_is_a_fault_with_the_override_to_type() -> None:
    composed = to_plain({"a": "???", "b": [{"c": "???"}], "d": "${a}"})
    faults = by_path(composed.faults)
    assert set(faults) == {"a", "b[0].c"}
    assert "`a=VALUE`" in faults["a"]
    assert "`b.0.c=VALUE`" in faults["b[0].c"]
    assert composed.tree == {"a": MISSING, "b": [{"c": MISSING}], "d": MISSING}


def test_every_interpolation_that_leads_nowhere_is_a_fault() -> None:
    faults = by_path(to_plain({"a": "${x.y}", "b": {"c": "${no_resolver:1}"}}).faults)
    assert set(faults) == {"a", "b.c"}
    assert "x" in faults["a"]


def test_an_interpolation_that_leads_nowhere_is_told_once_where_it_stands() -> None:
    tree = {"a": "${x.y}", "b": ["${a}", "${b[0]}", "${a}-${z}"], "c": "${d}", "d": "${c}"}
    faults = by_path(to_plain(tree).faults)
    assert set(faults) == {"a", "c", "d"}  # and those in a circle, of which none is the first
    assert "there is no `x.y`" in faults["a"]


def test_a_key_that_yaml_took_for_something_else_is_a_fault() -> None:
    composed = to_plain(read("a: {on: 1, 012: 2}"))
    faults = by_path(composed.faults)
    assert set(faults) == {"a.True", "a.10"}
    assert "in quotes" in faults["a.True"]


def test_it_is_known_where_an_interpolated_value_comes_from() -> None:
    composed = to_plain({"model": {"dim": 3, "chunks": [{"dim": "${model.dim}", "n": "a${x}"}]}})
    assert composed.origins == {"model.chunks[0].dim": "model.dim"}
    assert {"model", "dim", "x"} <= composed.referenced


def test_yaml_keeps_names_that_look_like_numbers() -> None:
    tree = {"a": "1e1", "b": "on", "c": "012", "d": "null", "e": 3, "f": [None, "x"]}
    text = to_yaml(tree)
    assert to_plain(read(text)).tree == tree
