"""A run as sinks are told of it."""

from __future__ import annotations

from pathlib import Path

from ppframe.metrics import Plan, RunInfo, StagePlan
from ppframe.schedule import Action
from ppframe.simulator import TimelineEntry

SPANS = [(0, "0F0", 0, 1), (1, "1F0", 1, 2), (1, "1BW0", 2, 4), (0, "0BW0", 4, 6)]


def make_plan() -> Plan:
    """One microbatch through two ranks: 6 units, of which each rank works 3."""
    return Plan(
        schedule="gpipe",
        num_microbatches=1,
        batch_size=4,
        stages=(StagePlan(0, 0, ("0", "1"), 1200), StagePlan(1, 1, ("2",), 30)),
        devices=("cpu", "cpu"),
        bubble_fraction=0.5,
        peak_in_flight=(1, 1),
        state_bytes=(9600, 240),
        timeline=tuple(TimelineEntry(r, Action.parse(a), s, e) for r, a, s, e in SPANS),
        data="two files",
        unigram_entropy=3.25,
    )


def make_run(run_dir: Path) -> RunInfo:
    """Twenty steps of that plan."""
    return RunInfo(
        run_dir=run_dir,
        name="first",
        group="sweep",
        num_steps=20,
        config={"optimizer": {"name": "adamw", "betas": [0.9, 0.99]}, "seed": None},
        plan=make_plan(),
    )
