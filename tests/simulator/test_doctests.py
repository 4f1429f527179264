import doctest
import importlib
import pkgutil

import pytest

import ppframe.simulator

MODULES = [module.name for module in pkgutil.iter_modules(ppframe.simulator.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_run(name: str) -> None:
    module = importlib.import_module(f"ppframe.simulator.{name}")
    assert doctest.testmod(module).failed == 0


def test_there_are_examples_for_what_is_called() -> None:
    for name in ("Cost", "TimelineEntry", "chrome_trace", "draw_terminal", "replay", "simulate"):
        assert ">>>" in (getattr(ppframe.simulator, name).__doc__ or "")
