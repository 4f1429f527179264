"""What a sink is: a place that a run's numbers and texts go to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from ppframe.simulator import TimelineEntry


@final
@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage, as the plan shows it.

    Args:
        stage: place in forward order, from 0.
        rank: pipeline rank that owns it.
        modules: names of its model chunks in the unsplit model.
        num_parameters: numbers in its parameters.
    """

    stage: int
    rank: int
    modules: tuple[str, ...]
    num_parameters: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known about a run before its first step.

    Args:
        schedule: name of the schedule.
        num_microbatches: microbatches of a training batch.
        batch_size: samples of a training batch.
        stages: every stage, in forward order.
        devices: device of each pipeline rank, as printed.
        bubble_fraction: idle share of all ranks' time that the simulator predicts.
        span_bubble: idle share of the rank with the longest span, likewise.
        makespan: length of a step that the simulator predicts, in `time_unit`.
        time_unit: what times are in; `s` for seconds, empty where it has no name.
        peak_in_flight: for each rank, how many (stage, microbatch) pairs it holds at most.
        state_bytes: for each rank, bytes of its weights and of their gradients.
        peak_bytes: for each rank, the most memory that the simulator predicts; empty where nothing
            is known of the bytes of activations and weights.
        timeline: when each action runs in the simulator, in `time_unit`.
        data: one line about the data.
        unigram_entropy: entropy of single tokens in nats, which a model without context can't
            beat; None where there is no such number.
    """

    schedule: str
    num_microbatches: int
    batch_size: int
    stages: tuple[StagePlan, ...]
    devices: tuple[str, ...]
    bubble_fraction: float
    peak_in_flight: tuple[int, ...]
    state_bytes: tuple[int, ...]
    timeline: tuple[TimelineEntry, ...]
    span_bubble: float | None = None
    makespan: float | None = None
    time_unit: str = ""
    peak_bytes: tuple[float, ...] = ()
    data: str = ""
    unigram_entropy: float | None = None

    @property
    def ranks(self) -> int:
        """Number of pipeline ranks."""
        return len(self.devices)

    def stages_of(self, rank: int) -> tuple[StagePlan, ...]:
        """Stages of a rank, in forward order."""
        return tuple(stage for stage in self.stages if stage.rank == rank)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a sink is told when a run starts.

    Args:
        run_dir: folder of the run; it exists.
        job_type: the mode, such as `train`.
        name: how people call the run; empty for none.
        group: what the run belongs to, such as a sweep; empty for none.
        num_steps: optimizer updates to come; 0 where nothing is trained.
        config: the whole configuration, resolved: nested plain dicts, lists and scalars.
        plan: what is known before the first step.
    """

    run_dir: Path
    job_type: str = "train"
    name: str = ""
    group: str = ""
    num_steps: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    plan: Plan | None = None


class Sink(ABC):
    """A place that a run's numbers and texts go to.

    Calls come in this order: `start` once, `log` and `text` any number of times, `finish` once.
    `finish` comes even where `start` raised, so that nothing stays open. After it the sink holds no
    file, thread or process; it is not started again.
    """

    @abstractmethod
    def start(self, run: RunInfo) -> None:
        """Begin a run."""

    @abstractmethod
    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Take the numbers of a step.

        Args:
            metrics: key `group/name_unit` → number; numbers may be NaN or infinite.
            step: optimizer updates done, from 1; it only grows.
        """

    @abstractmethod
    def text(self, name: str, text: str) -> None:
        """Take a text, such as a sample that the model wrote.

        Args:
            name: one word.
            text: any characters and any number of lines.
        """

    def page(self, name: str, page: str) -> None:  # noqa: B027 (most have no place for one)
        """Take a page, such as the drawing of a step as it ran.

        Args:
            name: one word.
            page: HTML that loads nothing from elsewhere.
        """

    @abstractmethod
    def finish(self, summary: Mapping[str, Any], exit_code: int) -> None:
        """End the run and let go of everything.

        Args:
            summary: what `summary.json` holds.
            exit_code: what the process would exit with for this run: 0 when it came to its end.
        """
