"""Import paths that lead somewhere, and the reasons of those that don't."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ppframe.config.targets import NotImportable, locate


def reason(path: str) -> str:
    with pytest.raises(NotImportable) as caught:
        locate(path)
    return str(caught.value)


def test_a_class_and_a_class_inside_a_class_are_found() -> None:
    assert locate("torch.nn.Linear") is torch.nn.Linear
    assert locate("pathlib.Path.cwd") == Path.cwd


def test_a_misspelt_class_is_told_its_nearest_names() -> None:
    text = reason("torch.optim.AdamWW")
    assert "`torch.optim` has no `AdamWW`" in text
    assert text.index("`AdamW`") < text.index("`Adam`")


def test_a_misspelt_module_is_told_its_nearest_names() -> None:
    assert "`optim`" in reason("torch.optimm.AdamW")
    assert "`torch`" in reason("torhc.optim.AdamW")


def test_no_import_path_at_all_is_refused() -> None:
    assert "import path such as" in reason("not a path")
    assert "import path such as" in reason("")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import no_such_package_here\n", "ModuleNotFoundError: No module named 'no_such_package"),
        ("value = 1\nraise OSError('disk gone')\n", "OSError: disk gone"),
        ("def broken(:\n", "SyntaxError"),
        ("value = 1\nraise SystemExit(0)\n", "SystemExit: 0"),
    ],
)
def test_a_module_that_fails_shows_its_own_error_and_line(
    source: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"failing_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    text = reason(f"{name}.Thing")
    assert expected in text
    assert f"{name}.py, line {source.count(chr(10))}" in text
