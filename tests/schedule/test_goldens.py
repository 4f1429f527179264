"""The golden files: what generators make is in them, and torch can read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ppframe.schedule import Schedule, verify
from tests.goldens.__main__ import FOLDER, golden
from tests.strategies import GENERATORS


def test_every_generator_has_one() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.csv")) == sorted(GENERATORS)


@pytest.mark.parametrize("name", GENERATORS)
def test_it_is_what_the_generator_makes(name: str) -> None:
    """After a change that is wanted: `make golden`, and review the difference."""
    made = golden(name)
    kept = Schedule.from_csv(FOLDER / f"{name}.csv")
    assert kept.to_text().splitlines() == made.to_text().splitlines()
    assert kept == made
    verify(kept)


@pytest.mark.parametrize("name", GENERATORS)
def test_torch_reads_it(name: str, tmp_path: Path) -> None:
    torch_schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    kept = Schedule.from_csv(FOLDER / f"{name}.csv")
    kept.to_csv(tmp_path / "torch.csv", dialect="torch")
    actions = {
        rank: [torch_schedules._Action.from_str(cell) for cell in line.split(",")]
        for rank, line in enumerate((tmp_path / "torch.csv").read_text().splitlines())
    }
    if not kept.chains:  # torch's check knows a stage on one rank only
        torch_schedules._validate_schedule(actions, 4, kept.num_stages, kept.num_microbatches)
    # and what torch writes of it comes back the same
    text = "".join(",".join(map(str, actions[rank])) + "\r\n" for rank in actions)
    assert Schedule.from_text(text, dialect="torch") == kept
