"""What the papers publish about their schedules, beside what ours come to in the simulator.

    python benchmarks/paper_tables/run.py          # about half a minute
    python benchmarks/paper_tables/run.py --quick  # without the rows where P M is above 1,024

Prints every table; the published figure stands in brackets where it is not ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from closed_forms import TABLES
from zero_bubble import (
    RATES,
    Row,
    knees,
    limited,
    published_passes,
    undercounted,
    zero_bubble_rows,
)

COLUMNS: dict[str, tuple[str, Callable[[Row], float]]] = {
    "1f1b": ("1f1b", RATES["1f1b"].of),
    "interleaved-1f1b": ("interleaved_published", RATES["interleaved_published"].of),
    "the same, waits left out": ("interleaved_published", undercounted),
    "zb-h1": ("zb_h1", RATES["zb_h1"].of),
    "zb-h2": ("zb_h2", RATES["zb_h2"].of),
    "zb-1p": ("zb_1p", RATES["zb_1p"].of),
    "zb-2p": ("zb_2p", RATES["zb_2p"].of),
    "v-zb, the paper's passes": ("zb_v_searched", published_passes),
    "v-zb": ("zb_v_searched", RATES["zb_v_searched"].of),
    "zbv": ("zbv", RATES["zbv"].of),
}
"""Heads of columns → the published column, and what gives ours."""
LIMITS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
QUICK = 1024


def rates(rows: Iterable[Row]) -> None:
    print("\n## Zero Bubble, Tables 5 and 8: bubble rates")
    header("table", "model", "P", "M", *COLUMNS)
    for row in rows:
        figures = [
            beside(row.published[name], rate(row)) if name in row.published else ""
            for name, rate in COLUMNS.values()
        ]
        line(row.table, row.model, row.ranks, row.microbatches, *figures)


def curve(row: Row) -> None:
    flat, zero = knees(row)
    print(f"\n## Zero Bubble, Figure 7: {row.model}, P = {row.ranks}, M = {row.microbatches}")
    print(f"\nThe paper: about linear, flat near {flat:.1f} M_B, exactly zero from {zero:.1f} on.")
    header("limit in M_B", "span bubble")
    limits = sorted({*(limit * row.ranks for limit in LIMITS), round(flat), int(zero) + 1})
    for limit in limits:
        line(f"{limit:g}", f"{limited(row, limit):.4f}")


def closed_forms() -> None:
    for title, figures in TABLES.items():
        print(f"\n## {title}")
        header("figure", "ours")
        for figure in figures():
            line(figure.what, beside(figure.published, figure.ours))


def header(*names: str) -> None:
    print("\n| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")


def line(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def beside(published: float, ours: float) -> str:
    """Ours, and the published figure in brackets where it is another."""
    both = [f"{figure:.4f}" for figure in (ours, published)]
    return both[0] if both[0] == both[1] else f"{both[0]} ({both[1]})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"rows of at most {QUICK} P M")
    quick = parser.parse_args().quick
    rows = zero_bubble_rows()
    closed_forms()
    curve(next(row for row in rows if row.model == "6.2B" and row.microbatches == 32))
    rates(row for row in rows if not quick or row.ranks * row.microbatches <= QUICK)


if __name__ == "__main__":
    main()
