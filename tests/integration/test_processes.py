"""Ranks in processes of their own: equal to ranks in one, and ended together."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ppframe import Pipeline
from ppframe.engine import ProcessesEngine, Ranks
from ppframe.engine.local import LocalEngine
from ppframe.errors import EngineError, StageError
from ppframe.training.clip import clip_global_norm

pytestmark = pytest.mark.filterwarnings("ignore")


def engine(timeout_s: float = 60.0) -> ProcessesEngine:
    return ProcessesEngine(LocalEngine("cpu", 1), timeout_s)


def chunks(count: int) -> list[nn.Module]:
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.2)) for _ in range(count)]


def train(options: dict[str, Any], ranks: Ranks) -> dict[str, Any]:
    """A few steps under several schedules and sizes; what every rank must agree on."""
    found: dict[str, Any] = {}
    for schedule, per_rank in options["schedules"]:
        modules = chunks(options["ranks"] * per_rank)
        with Pipeline(
            modules, loss=nn.MSELoss(), schedule=schedule, ranks=options["ranks"],
            chunks_per_rank=per_rank, microbatch_size=2, seed=3, member=ranks.member,
        ) as pipe:  # fmt: skip
            optimizer = torch.optim.SGD(pipe.parameters(), lr=0.5)
            losses = []
            for step, size in enumerate((12, 11, 12)):
                generator = torch.Generator().manual_seed(step)
                x, y = torch.randn(2, size, 6, generator=generator)
                losses.append(pipe.step(x, y).microbatch_losses)
                norm = clip_global_norm(pipe.parameters(), 0.1, ranks.total)
                optimizer.step()
                optimizer.zero_grad()
            found[schedule] = {
                "losses": losses, "norm": norm, "state": pipe.state_dict(),
                "evaluated": pipe.evaluate(x, y).loss, "output": pipe.forward(x),
            }  # fmt: skip
    return found


def test_processes_give_what_one_process_gives(tmp_path):
    schedules = [("1f1b", 1), ("dora-dfs", 2), ("zbv", 2), ("gpipe", 1)]
    work = partial(train, {"ranks": 2, "schedules": schedules})
    together = LocalEngine("cpu", 1).run(work, num_ranks=2, seed=0, log_dir=tmp_path)
    apart = engine().run(work, num_ranks=2, seed=0, log_dir=tmp_path)
    torch.testing.assert_close(apart, together, rtol=0, atol=0)


class Fails(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "raise":
            raise ValueError("no more")
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "hang":
            time.sleep(600)
        return x


def fail(how: str, ranks: Ranks) -> None:
    modules = chunks(4)
    modules[1] = Fails(how)
    options = {"schedule": "dora-dfs", "ranks": 2, "microbatch_size": 2}
    with Pipeline(modules, loss=nn.MSELoss(), **options, member=ranks.member) as pipe:
        pipe.step(torch.randn(12, 6), torch.randn(12, 6))


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ("raise", StageError, "action 1F0 of stage 1 on rank 1 .* ValueError: no more"),
        ("kill", EngineError, "rank 1 .* killed by SIGKILL"),
        ("hang", StageError, "within 2 s, but rank 1 did not answer"),
    ],
)
def test_a_failing_rank_ends_all_with_the_real_reason(tmp_path, how, kind, text):
    with pytest.raises(kind, match=text):
        engine(timeout_s=2.0).run(partial(fail, how), num_ranks=2, seed=0, log_dir=tmp_path)
    assert not children_of(os.getpid())


def children_of(pid: int) -> list[str]:
    """Command lines of processes below this one that run a rank."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    children = [child for file in lists for child in file.read_text().split()]
    lines = [Path(f"/proc/{child}/cmdline").read_text() for child in children]
    return [line for line in lines if "spawn_main" in line]
