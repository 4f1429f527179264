"""The examples in docstrings run, and show what comes out."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import ppframe.schedule

MODULES = ["ppframe.schedule", *(
    module.name for module in pkgutil.walk_packages(ppframe.schedule.__path__, "ppframe.schedule.")
)]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples() -> None:
    found = [
        test
        for name in MODULES
        for test in doctest.DocTestFinder().find(importlib.import_module(name))
        if test.examples
    ]
    assert len(found) > 20


def test_exported_names_are_sorted_and_there() -> None:
    exported = ppframe.schedule.__all__
    assert exported == sorted(exported)
    assert all(hasattr(ppframe.schedule, name) for name in exported)
