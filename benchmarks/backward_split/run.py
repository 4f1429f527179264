"""Time and memory of B and W apart beside BW at once, interleaved in one process.

Prints three tables: time for stacks of layers, memory of transformer blocks, time of tiny layers.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from ppframe import Pipeline
from ppframe.models.gpt import Block
from ppframe.schedule import Action, Placement, Schedule
from ppframe.stage import Stage

ROUNDS = 11
CPU = torch.device("cpu")


def mlp(width: int) -> list[nn.Module]:
    """Four linear layers with ReLU."""
    return [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(4)]


def blocks(width: int) -> list[nn.Module]:
    """Two transformer blocks."""
    return [Block(dim=width, heads=8) for _ in range(2)]


def stage_of(chunks: list[nn.Module]) -> Stage:
    """A middle stage, whose input wants a gradient."""
    return Stage(1, list(enumerate(chunks)), device=CPU, seed=0)


def parts(stage: Stage, x: Tensor, seed: Tensor, *, split: bool) -> tuple[float, float]:
    """CPU seconds of B and of W for one microbatch; of BW and 0 where it isn't split."""
    stage.begin_step(0)
    stage.forward(0, x, {})
    start = time.process_time()
    if not split:
        stage.backward(0, (seed,))
        return time.process_time() - start, 0.0
    stage.backward_input(0, (seed,))
    middle = time.process_time()
    stage.backward_weight(0)
    return middle - start, time.process_time() - middle


def compare(chunks: list[nn.Module], shape: tuple[int, ...], repeats: int) -> list[float]:
    """Medians of BW, B / BW, W / BW and (B + W) / BW."""
    stage, x = stage_of(chunks), torch.randn(shape, requires_grad=True)
    seed = torch.randn(shape)
    whole, inputs, weights = [], [], []
    for _ in range(ROUNDS):
        gc.collect()
        together = sum(parts(stage, x, seed, split=False)[0] for _ in range(repeats))
        apart = [parts(stage, x, seed, split=True) for _ in range(repeats)]
        whole.append(together / repeats)
        inputs.append(sum(b for b, _ in apart) / together)
        weights.append(sum(w for _, w in apart) / together)
    both = [b + w for b, w in zip(inputs, weights, strict=True)]
    return [statistics.median(values) for values in (whole, inputs, weights, both)]


def order(letters: str) -> Schedule:
    """One rank: four forwards, and then the backwards as the letters say."""
    count = dict.fromkeys("FBW", 0)
    actions = []
    for kind in ("F", "F", "F", "F", *letters.split()):
        number = count[kind[0]]
        count[kind[0]] += 1
        actions.append(Action.parse(f"0{kind}{number}"))
    return Schedule((tuple(actions),), Placement.loop(1))


def peak_mib(letters: str, results: multiprocessing.Queue[float]) -> None:
    """Peak memory over the start of the second step, in a process of its own."""
    torch.set_num_threads(1)
    chunks = [nn.Sequential(*(Block(dim=256, heads=8) for _ in range(4)))]
    x, y = torch.randn(32, 128, 256), torch.randn(32, 128, 256)
    with Pipeline(chunks, loss=nn.MSELoss(), schedule=order(letters), microbatch_size=8) as pipe:
        pipe.step(x, y)
        before = resident()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        pipe.step(x, y)
        results.put((resident("VmHWM") - before) / 1024)


def resident(line: str = "VmRSS") -> int:
    """KiB of this process in memory."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(row.split()[1]) for row in status.splitlines() if row.startswith(line))


def memory() -> None:
    """Print the peaks of orders of B and W."""
    print("\nMemory: 4 blocks of 256, 4 microbatches of 8 x 128 tokens\n")
    print("| backward | peak MiB | ratio |\n|---|---|---|")
    base = 0.0
    # Freed memory goes back to the system at once, so that what is resident is what is in use.
    os.environ |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
    context = multiprocessing.get_context("spawn")
    for letters in ("BW BW BW BW", "B W B W B W B W", "B B B B W W W W"):
        results: multiprocessing.Queue[float] = context.Queue()
        process = context.Process(target=peak_mib, args=(letters, results))
        process.start()
        peak = results.get()
        process.join()
        base = base or peak
        print(f"| {letters} | {peak:.0f} | {peak / base:.2f} |")


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(
        "| stage | microbatch | BW ms | B / BW | W / BW | (B + W) / BW |\n|---|---|---|---|---|---|"
    )
    cases: list[tuple[str, Callable[[], list[nn.Module]], tuple[int, ...], int]] = [
        ("4 linear layers of 1024", lambda: mlp(1024), (256, 1024), 1),
        ("2 blocks of 256", lambda: blocks(256), (4, 64, 256), 4),
        ("2 blocks of 512", lambda: blocks(512), (2, 128, 512), 2),
        ("2 blocks of 1024", lambda: blocks(1024), (2, 128, 1024), 1),
        ("4 linear layers of 128", lambda: mlp(128), (32, 128), 50),
        ("4 linear layers of 16", lambda: mlp(16), (4, 16), 50),
    ]
    for name, build, shape, repeats in cases:
        whole, inputs, weights, both = compare(build(), shape, repeats)
        ratios = f"{inputs:.2f} | {weights:.2f} | {both:.2f}"
        print(f"| {name} | {' × '.join(map(str, shape))} | {whole * 1e3:.2f} | {ratios} |")
    memory()


if __name__ == "__main__":
    main()
