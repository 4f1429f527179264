"""Plugins that can't be imported, whichever way they fail."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from ppframe.config import plugins
from ppframe.config.instantiate import make_target
from ppframe.config.schema import Target
from ppframe.errors import ConfigError
from tests.launching import process_state


def leave() -> None:
    raise SystemExit(0)


def test_a_plugin_that_ends_the_process_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "leaving_plugin.py").write_text("import sys\nsys.exit(0)\n")
    with process_state():
        (fault,) = plugins.import_plugins(["leaving_plugin"], tmp_path)
    assert fault.path == "plugins[0]"
    assert "SystemExit: 0" in fault.message


def test_an_installed_plugin_that_ends_the_process_is_a_fault(tmp_path: Path) -> None:
    entry = SimpleNamespace(name="leaving", value="leaving:main", load=leave)
    with process_state(), mock.patch.object(plugins, "entry_points", return_value=[entry]):
        (fault,) = plugins.import_plugins([], tmp_path)
    assert "`leaving` (leaving:main) must be importable" in fault.message


def test_a_builder_that_ends_the_process_is_a_fault() -> None:
    target = Target(path=f"{__name__}.leave", kwargs={})
    with pytest.raises(ConfigError, match="raised SystemExit: 0") as caught:
        make_target(target, "loss")
    assert caught.value.path == "loss"
