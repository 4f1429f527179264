"""`summary.json`: how a run ended, on disk whatever happened."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from ppframe.metrics import to_json
from ppframe.training.files import write_text
from ppframe.training.interrupt import exit_code_of

FILE_NAME = "summary.json"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How a run ended.

    Args:
        status: `finished`, `failed` by an error, or `interrupted` by a signal.
        mode: what the run did, such as `train`.
        steps: updates done.
        final_loss: last `train/loss`; None without a step.
        best_val_loss: lowest `val/loss`; None where nothing was evaluated.
        bubble_fraction_predicted: idle share of the ranks in the simulator.
        bubble_fraction_measured: median of the measured idle shares; None where none was measured.
        bubble_source: `wall` or `replayed`, see `Bubble`.
        first_nonfinite_step: first step with a loss or gradients that were NaN or infinite.
        wall_s: seconds from the start of the run to its end.
        run_dir: folder of the run.
        exit_code: what a process ends with after this run.
        error: type and text of the error; None without one.
    """

    status: Literal["finished", "failed", "interrupted"]
    mode: str
    steps: int = 0
    final_loss: float | None = None
    best_val_loss: float | None = None
    bubble_fraction_predicted: float | None = None
    bubble_fraction_measured: float | None = None
    bubble_source: str | None = None
    first_nonfinite_step: int | None = None
    wall_s: float
    run_dir: str
    exit_code: int
    error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)


def ending(error: BaseException | None) -> dict[str, Any]:
    """The fields `status`, `exit_code` and `error` after this error, or after none."""
    if error is None:
        return {"status": "finished", "exit_code": 0, "error": None}
    stopped = isinstance(error, KeyboardInterrupt)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return {
        "status": "interrupted" if stopped else "failed",
        "exit_code": exit_code_of(error),
        "error": text,
    }


def write_summary(summary: Summary) -> None:
    """Write `summary.json` into the run's folder, whole or not at all."""
    text = to_json(summary.as_dict(), indent=2) + "\n"
    write_text(Path(summary.run_dir) / FILE_NAME, text)
