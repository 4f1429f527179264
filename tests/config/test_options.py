"""What a callable takes, and what fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import torch
from pydantic import Field

from ppframe.config.options import ANYTHING, Unfit, convert, describe, fits, options_of


def build(*, lr: float, betas: tuple[float, float] = (0.9, 0.99), path: Path | None = None) -> None:
    """A builder with annotations that are texts, as everywhere in this project."""


def test_keyword_parameters_are_the_options() -> None:
    options = options_of(build)
    assert list(options.named) == ["lr", "betas", "path"]
    assert options.named["lr"].required
    assert options.named["betas"].default == (0.9, 0.99)
    assert options.named["path"].annotation == Path | None
    assert not options.open


def test_a_class_is_asked_for_its_constructor() -> None:
    options = options_of(torch.nn.Linear)
    assert {"in_features", "out_features", "bias"} <= set(options.named)
    assert options.named["in_features"].required


def test_parameters_that_the_run_gives_are_no_options() -> None:
    assert "params" not in options_of(torch.optim.SGD, without=("params",)).named


def test_keywords_of_any_name_are_taken_where_the_callable_takes_them() -> None:
    assert options_of(lambda **rest: rest).open


def test_a_callable_without_a_signature_takes_anything() -> None:
    assert options_of(dict).open


def test_unreadable_annotations_check_names_only() -> None:
    def odd(size: NoSuchType) -> None:  # type: ignore[name-defined] # noqa: F821
        del size

    assert options_of(odd).named["size"].annotation is ANYTHING


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (tuple[float, float], [1, 0.5], (1.0, 0.5)),
        (tuple[int, ...], [1, 2], (1, 2)),
        (float, 3, 3.0),
        (Path | None, "a/b", Path("a/b")),
        (Literal["even"] | tuple[int, ...], "even", "even"),
        (float | torch.Tensor, 0.1, 0.1),
        (Mapping[str, int], {"a": 1}, {"a": 1}),
        (float, float("inf"), float("inf")),
        (Any, [1, "a"], [1, "a"]),
        (ANYTHING, {"a": [1]}, {"a": [1]}),
    ],
)
def test_a_fitting_value_takes_the_form_of_its_type(
    annotation: Any, value: Any, expected: Any
) -> None:
    converted = convert(annotation, value)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "4"),
        (int, 4.0),
        (int, True),
        (float, True),
        (bool, 1),
        (str, 12),
        (str, None),
        (tuple[float, float], [0.9]),
        (Annotated[int, Field(ge=1)], 0),
        (Literal["a", "b"], "c"),
        (Sequence[str], "abc"),
    ],
)
def test_nothing_is_bent_to_fit(annotation: Any, value: Any) -> None:
    assert not fits(annotation, value)
    with pytest.raises(Unfit):
        convert(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "a whole number"),
        (Annotated[int, Field(ge=1)] | None, "a whole number of at least 1 or null"),
        (Annotated[float, Field(gt=0)], "a number above 0"),
        (Literal["even", "parameters"], "`even` or `parameters`"),
        (tuple[int, ...], "a list (each a whole number)"),
        (tuple[float, float], "a list of 2 (a number, a number)"),
        (str | Sequence[str], "text or a list (each text)"),
        (Mapping[str, int], "a mapping"),
        (torch.dtype, "dtype"),
    ],
)
def test_types_are_described_in_words(annotation: Any, words: str) -> None:
    assert describe(annotation) == words
