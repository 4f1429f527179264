"""CPU time of the runtime beside hand-written loops, interleaved in one process.

Prints two tables: microseconds per forward-backward pair of a tiny model, and the time of a step of
wide layers beside the plain model with gradient accumulation.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

from ppframe import Pipeline

ROUNDS = 15


def interleaved(runs: dict[str, Callable[[], None]]) -> dict[str, list[float]]:
    """CPU seconds of each run, A B C A B C …, after one warm-up each."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(ROUNDS):
        for name, run in runs.items():
            gc.collect()
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return times


def show(title: str, times: dict[str, list[float]], scale: float, unit: str) -> None:
    """One line for each run: median, and the median of its ratios to the first."""
    print(f"\n{title}\n\n| run | median {unit} | ratio |\n|---|---|---|")
    base = next(iter(times.values()))
    for name, values in times.items():
        ratio = statistics.median(v / b for v, b in zip(values, base, strict=True))
        print(f"| {name} | {statistics.median(values) * scale:.1f} | {ratio:.2f} |")


def bare_loop(
    modules: list[nn.Module], x: torch.Tensor, y: torch.Tensor, size: int
) -> Callable[[], None]:
    """Detached stages by hand: the least that any runtime with stages must do."""
    loss = nn.MSELoss()
    num_microbatches = len(x) // size

    def run() -> None:
        for part, target in zip(x.split(size), y.split(size), strict=True):
            value, saved = part, []
            for module in modules:
                leaf = value.detach().requires_grad_()
                value = module(leaf)
                saved.append((leaf, value))
            (loss(value, target) / num_microbatches).backward()
            gradient = saved.pop()[0].grad
            for leaf, output in reversed(saved):
                torch.autograd.backward((output,), (gradient,))
                gradient = leaf.grad

    return run


def accumulation(
    modules: list[nn.Module], x: torch.Tensor, y: torch.Tensor, size: int
) -> Callable[[], None]:
    """The plain model, one microbatch after the other."""
    model, loss = nn.Sequential(*modules), nn.MSELoss()
    num_microbatches = len(x) // size

    def run() -> None:
        for part, target in zip(x.split(size), y.split(size), strict=True):
            (loss(model(part), target) / num_microbatches).backward()

    return run


def pipeline(
    modules: list[nn.Module], x: torch.Tensor, y: torch.Tensor, size: int, schedule: str, ranks: int
) -> Callable[[], None]:
    """The same through ppframe."""
    pipe = Pipeline(
        modules, loss=nn.MSELoss(), schedule=schedule, ranks=ranks, microbatch_size=size
    )
    return lambda: void(pipe.step(x, y))


def void(_: object) -> None:
    """Drop a result."""


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    stages, microbatches = 16, 64
    tiny = [nn.Linear(8, 8) for _ in range(stages)]
    x, y = torch.randn(4 * microbatches, 8), torch.randn(4 * microbatches, 8)
    runs = {"bare loop": bare_loop(tiny, x, y, 4)}
    for name in ("interleaved-1f1b", "looped-bfs", "dora-dfs", "interleaved-zb"):
        runs[f"ppframe {name}, 1 rank"] = pipeline(tiny, x, y, 4, name, 1)
    runs["ppframe dora-dfs, 4 ranks"] = pipeline(tiny, x, y, 4, "dora-dfs", 4)
    title = f"Tiny: {stages} stages of Linear(8, 8), {microbatches} microbatches of 4, one thread"
    show(title, interleaved(runs), 1e6 / (stages * microbatches), "µs per pair")

    width = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    wide = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(8)]
    x, y = torch.randn(64 * 8, width), torch.randn(64 * 8, width)
    runs = {"plain accumulation": accumulation(wide, x, y, 64)}
    for name, ranks in (("1f1b", 8), ("dora-dfs", 2), ("looped-bfs", 2)):
        runs[f"ppframe {name}, {ranks} ranks"] = pipeline(wide, x, y, 64, name, ranks)
    title = f"Wide: 8 layers of {width}, 8 microbatches of 64, one thread"
    show(title, interleaved(runs), 1e3, "ms per step")


if __name__ == "__main__":
    main()
