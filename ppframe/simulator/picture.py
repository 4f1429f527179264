"""What a drawing shows, before anybody says where on the page: rows, boxes, curves, figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias, final

from ppframe.errors import ConfigError
from ppframe.schedule import Action, ActionKind
from ppframe.schedule.action import parts, singles_of
from ppframe.schedule.cost import Cost
from ppframe.schedule.dependencies import dependencies
from ppframe.simulator.looks import Looks
from ppframe.simulator.memory import Curve, gains_of, memory_curve
from ppframe.simulator.report import SimulationReport, build_report
from ppframe.simulator.timeline import Timeline, TimelineEntry, num_stages_of

Drawn: TypeAlias = Timeline | SimulationReport
_UNIT_COST = Cost(1, 1, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawingOptions:
    """What of a timeline is drawn, and how large.

    Args:
        window: first and last time to show, in the unit of the timeline; None shows all.
        max_actions: where more would be shown, the beginning is, and the drawing says so.
        max_width: pixels of the time axis that are not exceeded to make room for numbers.
        transfers: draw an arrow for each hop between two ranks.
        note: lines below the figures.
        cost: bytes for the memory curves, or the share of an activation that W needs; None counts
            activations in flight.

    Raises:
        ConfigError: a window ends before it begins, or a limit is below 1.
    """

    window: tuple[float, float] | None = None
    max_actions: int = 20_000
    max_width: int = 2400
    transfers: bool = False
    note: str = ""
    cost: Cost | None = None

    def __post_init__(self) -> None:
        if self.window is not None and not self.window[0] < self.window[1]:
            raise ConfigError(
                f"window of a drawing must end after it begins, but is {self.window}.",
                path="window",
            )
        for name in ("max_actions", "max_width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"must be 1 or more, but is {getattr(self, name)}.", path=name)


@final
class Box(NamedTuple):
    """One computation of a drawing.

    Args:
        number: of the box, from 0, rank by rank.
        entry: what it shows.
        late: for a measured one, how much later it ends than predicted; 0 for others.
        is_critical: whether it lies on the critical path.
    """

    number: int
    entry: TimelineEntry
    late: float
    is_critical: bool


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One rank of a drawing.

    Args:
        rank: pipeline rank.
        stages: its stages.
        predicted: boxes of the timeline.
        measured: boxes of the measured one; empty where there is none.
        curve: memory over time; empty where nothing is kept.
        peak: when the memory is highest, for the first time, and how high.
    """

    rank: int
    stages: tuple[int, ...]
    predicted: tuple[Box, ...]
    measured: tuple[Box, ...]
    curve: Curve
    peak: tuple[float, float]


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that a drawing shows.

    Args:
        rows: a row for each rank.
        looks: chunk and chain of each action.
        start: first time that is shown.
        end: last time that is shown.
        whole: first start and last end of the timelines.
        report: figures of the timeline.
        measured: figures of the measured one; None where there is none.
        is_in_bytes: whether the memory curves are in bytes, not in activations.
        num_hidden: actions that are not shown.
    """

    rows: tuple[Row, ...]
    looks: Looks
    start: float
    end: float
    whole: tuple[float, float]
    report: SimulationReport
    measured: SimulationReport | None
    is_in_bytes: bool
    num_hidden: int

    @classmethod
    def of(
        cls, drawn: Drawn, measured: Timeline | None, options: DrawingOptions | None = None
    ) -> Picture:
        """The picture of a timeline, and of a measured one that is moved to the same start.

        Args:
            drawn: the timeline, or the report of a simulation with its figures.
            measured: the same actions as they ran, in the same unit of time.
            options: what is shown.
        """
        options = options or DrawingOptions()
        cost = options.cost or _UNIT_COST
        rows = by_rank(drawn.timeline if isinstance(drawn, SimulationReport) else drawn) or [[]]
        ran = _aligned(by_rank(measured or ()), rows)
        ran += ([] for _ in rows[len(ran) :])
        everything = [*chain(*rows, *ran)]
        whole = (
            min((entry.start for entry in everything), default=0.0),
            max((entry.end for entry in everything), default=0.0),
        )
        start, end = options.window or _window(everything, whole, options.max_actions)
        report = drawn if isinstance(drawn, SimulationReport) else _report(rows, cost)
        looks = Looks.of(chain(*rows))
        ends = {(e.rank, e.action): e.end for e in chain(*rows)} if measured else {}
        lanes = _Lanes(report, ends, (start, end))
        curves = _curves(rows, cost)
        made = tuple(
            Row(
                rank=rank,
                stages=looks.stages(rank),
                predicted=lanes.predicted(rows[rank]),
                measured=lanes.measured(ran[rank]),
                curve=curves[rank],
                peak=max(curves[rank], key=itemgetter(1), default=(start, 0.0)),
            )
            for rank in range(len(rows))
        )
        return cls(
            rows=made,
            looks=looks,
            start=start,
            end=end,
            whole=whole,
            report=report,
            measured=_report(ran, cost) if measured else None,
            is_in_bytes=is_in_bytes(cost),
            num_hidden=len(everything) - lanes.count,
        )

    @property
    def boxes(self) -> Iterator[Box]:
        """All boxes, in the order of their numbers."""
        return chain.from_iterable((*row.predicted, *row.measured) for row in self.rows)

    def needs(self) -> list[list[int]]:
        """For each box the numbers of those that must have run before it, as far as shown."""
        num_stages = num_stages_of(entry for _, entry, _, _ in self.boxes)
        needs: list[list[int]] = [[] for _ in self.boxes]
        for lane in (attrgetter("predicted"), attrgetter("measured")):
            boxes: list[Box] = [box for row in self.rows for box in lane(row)]
            boxes_of = {part: box.number for box in boxes for part in parts(box.entry.action)}
            for number, entry, _, _ in boxes:
                ways = chain.from_iterable(dependencies(entry.action, num_stages))
                needs[number] = [boxes_of[action] for action in ways if action in boxes_of]
        return needs


@final
class _Lanes:
    """Makes the boxes of each rank and numbers them on."""

    def __init__(
        self,
        report: SimulationReport,
        predicted_ends: Mapping[tuple[int, Action], float],
        window: tuple[float, float],
    ) -> None:
        self.count = 0
        self._critical = {entry.action for entry in report.critical_path}
        self._ends = predicted_ends
        self._start, self._end = window

    def predicted(self, entries: Sequence[TimelineEntry]) -> tuple[Box, ...]:
        """Boxes of the timeline that lie in the window."""
        return tuple(
            Box(self._next(), entry, 0.0, entry.action in self._critical)
            for entry in self._shown(entries)
        )

    def measured(self, entries: Sequence[TimelineEntry]) -> tuple[Box, ...]:
        """Boxes of the measured timeline, and how much later than predicted each ends."""
        return tuple(
            Box(self._next(), entry, entry.end - self._predicted_end(entry), False)
            for entry in self._shown(entries)
        )

    def _next(self) -> int:
        self.count += 1
        return self.count - 1

    def _shown(self, entries: Sequence[TimelineEntry]) -> Iterator[TimelineEntry]:
        return (e for e in entries if e.start < self._end and e.end >= self._start)

    def _predicted_end(self, entry: TimelineEntry) -> float:
        return self._ends.get((entry.rank, entry.action), entry.end)


def by_rank(timeline: Timeline) -> list[list[TimelineEntry]]:
    """For each rank its computations, in the order of their starts."""
    entries = sorted((e for e in timeline if e.is_compute), key=attrgetter("start", "end"))
    rows: list[list[TimelineEntry]] = [
        [] for _ in range(1 + max((entry.rank for entry in entries), default=-1))
    ]
    for entry in entries:
        rows[entry.rank].append(entry)
    return rows


def _report(rows: Sequence[Sequence[TimelineEntry]], cost: Cost) -> SimulationReport:
    """The figures of a timeline of which only the entries are known."""
    return build_report(rows, (), cost, num_stages_of(chain(*rows)))


def _aligned(
    ran: list[list[TimelineEntry]], rows: list[list[TimelineEntry]]
) -> list[list[TimelineEntry]]:
    """A measured timeline, moved so that it starts with the other one."""
    later = _first(ran) - _first(rows)
    return [[e._replace(start=e.start - later, end=e.end - later) for e in row] for row in ran]


def _first(rows: Iterable[Sequence[TimelineEntry]]) -> float:
    return min((row[0].start for row in rows if row), default=0.0)


def _window(
    entries: Sequence[TimelineEntry], whole: tuple[float, float], max_actions: int
) -> tuple[float, float]:
    """The whole, or so much of its beginning that no more actions begin there."""
    if len(entries) <= max_actions:
        return whole
    starts = sorted(map(attrgetter("start"), entries))
    return whole[0], max(starts[max_actions], starts[0])


def _curves(rows: Sequence[Sequence[TimelineEntry]], cost: Cost) -> list[Curve]:
    """Memory over time of each rank; nothing where there is no backward to keep it for."""
    num_stages = num_stages_of(chain(*rows))
    kinds = {kind for e in chain(*rows) for _, kind, _ in singles_of(e.action)}
    if kinds <= {ActionKind.F}:
        return [[] for _ in rows]
    share = cost.of_stages("weight_share", num_stages)
    if not is_in_bytes(cost):
        gains = gains_of((1.0,) * num_stages, share)
        return [memory_curve(row, gains) for row in rows]
    gains = gains_of(cost.of_stages("activation_bytes", num_stages), share)
    staying = cost.of_stages("weight_bytes", num_stages)
    stages = [{stage for e in row for stage, _, _ in singles_of(e.action)} for row in rows]
    levels = [sum(staying[stage] for stage in of_rank) for of_rank in stages]
    return [memory_curve(row, gains, level) for row, level in zip(rows, levels, strict=True)]


def is_in_bytes(cost: Cost) -> bool:
    """Whether a cost says how many bytes activations take."""
    given = cost.activation_bytes
    return any(given) if isinstance(given, Sequence) else given > 0
