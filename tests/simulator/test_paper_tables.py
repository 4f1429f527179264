"""The published figures: bubble rates to their four decimals, closed forms exactly.

The figures are in benchmarks/paper_tables, whose script prints all of them and says where each
deviation comes from. Here the large settings of a model stand in for none: its smallest does.
"""

from __future__ import annotations

import pytest

from benchmarks.paper_tables.closed_forms import TABLES
from benchmarks.paper_tables.zero_bubble import (
    RATES,
    Row,
    knees,
    limited,
    published_passes,
    undercounted,
    zero_bubble_rows,
)

ROWS = zero_bubble_rows()
SMALL = [row for row in ROWS if row.ranks * row.microbatches <= 1024 or row.microbatches == 96]
EXACT = [name for name in RATES if name not in ("interleaved_published", "zb_v_searched")]


def name_of(row: Row) -> str:
    return f"table {row.table}, {row.model}, {row.ranks}-{row.microbatches}"


def settings(rows: list[Row], column: str) -> pytest.MarkDecorator:
    """Every row that has a figure in this column."""
    given = [row for row in rows if column in row.published]
    return pytest.mark.parametrize("row", given, ids=name_of)


def test_every_model_of_both_tables_is_here() -> None:
    assert {(row.table, row.model) for row in SMALL} == {(row.table, row.model) for row in ROWS}
    assert len(ROWS) == 21


@pytest.mark.parametrize(
    ("row", "column"),
    [(row, name) for row in SMALL for name in EXACT if name in row.published],
    ids=lambda value: value if isinstance(value, str) else name_of(value),
)
def test_zero_bubble_rates(row: Row, column: str) -> None:
    assert round(RATES[column].of(row), 4) == row.published[column]


@settings(ROWS, "interleaved_published")
def test_interleaved_rates_are_the_published_ones_less_waits_that_were_left_out(row: Row) -> None:
    published = row.published["interleaved_published"]
    assert round(undercounted(row), 4) == published
    assert 8 <= round(1e4 * (row.published["interleaved_counted"] - published)) <= 50


@settings(ROWS, "zb_v_searched")
def test_zb_v_rates_by_the_passes_of_the_paper(row: Row) -> None:
    assert round(published_passes(row), 4) == row.published["zb_v_searched"]


@settings(SMALL, "zb_v_searched")
def test_v_zb_with_costs_is_never_worse_than_zb_v(row: Row) -> None:
    rate = round(RATES["zb_v_searched"].of(row), 4)
    assert rate <= min(row.published["zb_v_searched"], row.published["zbv"])


def test_bubble_falls_with_the_memory_limit_as_in_figure_7() -> None:
    """About linearly up to a plateau, which ends where all forwards fit before a backward."""
    row = next(row for row in ROWS if row.model == "6.2B" and row.microbatches == 32)
    flat, zero = knees(row)
    rates = {limit: limited(row, limit) for limit in (8, 10, 12, 14, int(flat), 16, int(zero) + 1)}
    falls = [rates[8] - rates[10], rates[10] - rates[12], rates[12] - rates[14]]
    assert min(falls) > 0.85 * max(falls) > 0
    assert rates[int(flat)] == pytest.approx(rates[16]) == pytest.approx(0.0022, abs=5e-5)
    assert rates[int(zero) + 1] == pytest.approx(0, abs=1e-9)


DEVIATIONS = {
    "interleaved-1f1b, V = 2, peak": -1 / (2 * 16),  # the paper rounds (P - 1) / P to 1
    "interleaved-1f1b, V = 4, peak": -1 / (4 * 16),
    "stp, P = 4, peak in stages": 1,  # a forward before the backward that it is paired with
    "stp, P = 8, peak in stages": 1,
}


@pytest.mark.parametrize("title", [title for title in TABLES if title != "Hanayo"])
def test_closed_forms(title: str) -> None:
    for figure in TABLES[title]():
        wanted = figure.published + DEVIATIONS.get(figure.what, 0)
        assert figure.ours == pytest.approx(wanted, abs=1e-9), figure.what


def test_hanayo_stays_below_a_formula_that_nobody_confirmed() -> None:
    """The bubble halves with every doubling of the waves, about as the formula says."""
    for figure in TABLES["Hanayo"]():
        assert 0.8 * figure.published < figure.ours < figure.published, figure.what
