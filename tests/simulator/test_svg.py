"""The SVG drawing, read back as XML: boxes at the right places, nothing left out unsaid."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from ppframe.errors import ConfigError
from ppframe.schedule import Action, ActionKind, Schedule, build_schedule, lower
from ppframe.simulator import Cost, DrawingOptions, TimelineEntry, draw_svg, replay, simulate
from tests.simulator.shapes import compute_only, schedules

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)


def with_class(root: ET.Element, name: str) -> list[ET.Element]:
    return [element for element in root.iter() if name in element.get("class", "").split()]


def boxes(root: ET.Element) -> list[ET.Element]:
    return with_class(root, "box")


def rects(box: ET.Element) -> list[tuple[float, float, float, float]]:
    """x, y, width and height of the coloured parts of a box."""
    found = (r for r in box.iter(f"{SVG}rect") if r.get("class") not in ("chain", "pair"))
    return [tuple(float(r.get(k, "0")) for k in ("x", "y", "width", "height")) for r in found]  # type: ignore[misc]


def texts(root: ET.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def entry(rank: int, text: str, start: float, end: float) -> TimelineEntry:
    return TimelineEntry(rank, Action.parse(text), start, end)


def drawn(name: str, ranks: int = 4, microbatches: int = 8) -> ET.Element:
    return parsed(draw_svg(simulate(build_schedule(name, ranks, microbatches)), title=name))


def actions(elements: list[ET.Element]) -> Iterator[str | None]:
    return (element.get("data-action") for element in elements)


@given(schedules())
@settings(max_examples=25, deadline=None)
def test_every_computation_has_a_box_with_its_times(schedule: Schedule) -> None:
    report = simulate(schedule)
    root = parsed(draw_svg(report))
    shown = {
        (b.get("data-action"), float(b.get("data-start", "")), float(b.get("data-end", "")))
        for b in boxes(root)
    }
    assert shown == {(str(e.action), e.start, e.end) for e in report.timeline}
    assert len(boxes(root)) == len(report.timeline)


def test_times_become_places() -> None:
    """Most boxes take 26 pixels: here the unit, so that the axis is 5 units long and 420 wide."""
    timeline = [entry(0, "0F0", 1, 2), entry(0, "0BW0", 4, 6), entry(1, "1F0", 2, 3)]
    root = parsed(draw_svg(timeline))
    scale = 420 / 5
    assert [rects(box)[0][0] for box in boxes(root)] == [0, 3 * scale, scale]
    assert [rects(box)[0][2] for box in boxes(root)] == [scale, 2 * scale, scale]
    assert float(root.get("data-per-unit", "")) == scale


def test_ranks_lie_below_each_other_in_their_order() -> None:
    root = drawn("1f1b")
    tops = [float(row.get("transform", "")[:-1].split()[1]) for row in with_class(root, "row")]
    assert tops == sorted(tops)
    assert [row.get("data-rank") for row in with_class(root, "row")] == ["0", "1", "2", "3"]
    assert {"rank 0", "rank 3", "stage 2"} <= set(texts(root))


def test_numbers_are_those_of_the_microbatches() -> None:
    root = parsed(draw_svg([entry(0, "0F3", 0, 1), entry(0, "0BW12", 1, 3)]))
    assert ["".join(n.itertext()) for n in with_class(root, "n")] == ["3", "12"]


def test_numbers_that_do_not_fit_are_left_out() -> None:
    timeline = [entry(0, f"0F{m}", m, m + 1) for m in range(30)]
    narrow = parsed(draw_svg(timeline, options=DrawingOptions(max_width=60)))
    assert len(boxes(narrow)) == 30
    assert with_class(narrow, "n") == []


def test_hovering_tells_action_stage_and_times() -> None:
    box = boxes(parsed(draw_svg([entry(2, "5B3", 1.5, 4)], unit="s")))[0]
    title = box.findtext(f"{SVG}title") or ""
    assert title.splitlines() == [
        "5B3 on rank 2",
        "backward for the input of stage 5, microbatch 3",
        "start 1.5 s, end 4 s, duration 2.5 s",
    ]


def test_kinds_have_colours_and_bands_and_chunks_have_shades() -> None:
    root = drawn("dora")
    looks = {rect.get("class") for box in boxes(root) for rect in box.iter(f"{SVG}rect")}
    assert {"F0", "F1", "BW0", "BW1", "B0", "B1", "W0", "W1"} == looks
    banded = {
        Action.parse(box.get("data-action", "")).kind: len(band.get("d", "").split("M")) - 1
        for box in boxes(root)
        for band in with_class(box, "band")
    }
    assert banded == {ActionKind.B: 1, ActionKind.W: 1, ActionKind.BW: 2}


def test_a_pair_is_one_box_with_two_halves() -> None:
    timeline = [entry(0, "(0F1;1BW0)", 0, 3), entry(0, "0F2", 3, 4)]
    pair, single = boxes(parsed(draw_svg(timeline)))
    upper, lower_half = rects(pair)
    assert upper[1] + upper[3] == lower_half[1]
    assert upper[3] + lower_half[3] == rects(single)[0][3]
    assert (upper[0], upper[2]) == (lower_half[0], lower_half[2])
    assert ["".join(n.itertext()) for n in with_class(pair, "n")] == ["1", "0"]


def test_the_second_chain_is_striped() -> None:
    timeline = [entry(0, "0F0", 0, 1), entry(1, "0F1", 0, 1), entry(0, "1F1", 1, 2)]
    root = parsed(draw_svg(timeline))
    striped = [bool(with_class(box, "chain")) for box in boxes(root)]
    assert striped == [False, True, True]
    assert "striped: microbatches that go the other way" in texts(root)


def test_the_memory_curve_has_its_peak_marked() -> None:
    root = drawn("1f1b")
    assert [t for t in texts(root) if t.startswith("peak ")] == [f"peak {p}" for p in (4, 3, 2, 1)]
    # rank 0 starts its fourth forward at 3
    assert with_class(root, "peak")[0].get("data-time") == "3"
    assert len(with_class(root, "area")) == 4 + 1  # and one in the legend


def test_memory_is_in_bytes_where_the_cost_tells_them() -> None:
    cost = Cost(1, 1, 1, activation_bytes=3 * 2**20, weight_bytes=2**20)
    report = simulate(build_schedule("1f1b", 2, 4), cost)
    root = parsed(draw_svg(report, options=DrawingOptions(cost=cost)))
    # rank 0 holds two microbatches, rank 1 one, each also its stage
    assert [t for t in texts(root) if t.startswith("peak ")] == ["peak 7.0 MiB", "peak 4.0 MiB"]


def test_forwards_alone_keep_nothing() -> None:
    root = parsed(draw_svg([entry(0, "0F0", 0, 1), entry(0, "0F1", 1, 2)]))
    assert with_class(root, "memory") == []


def test_names_are_escaped() -> None:
    root = parsed(draw_svg([entry(0, "0F0", 0, 1)], title='<b>"&', unit="<s>"))
    assert root.findtext(f"{SVG}title") == '<b>"&'
    assert "time in <s>" in [text.strip() for text in texts(root)]


def test_hops_are_drawn_on_demand() -> None:
    report = simulate(build_schedule("1f1b", 4, 8))
    assert with_class(parsed(draw_svg(report)), "hop") == []
    root = parsed(draw_svg(report, options=DrawingOptions(transfers=True)))
    assert len(with_class(root, "hop")) == 2 * 3 * 8  # both ways over 3 boundaries


def test_the_communication_of_a_lowered_schedule_is_no_box() -> None:
    schedule = build_schedule("1f1b", 2, 3)
    root = parsed(draw_svg(simulate(lower(schedule))))
    assert sorted(map(str, actions(boxes(root)))) == sorted(
        str(action) for row in schedule.actions for action in row
    )


def test_a_measured_timeline_lies_below_and_its_delay_is_told() -> None:
    schedule = compute_only("0F0 0BW0")
    measured = replay(schedule, {Action.parse("0F0"): 1.5, Action.parse("0BW0"): 2.0}).timeline
    later = [e._replace(start=e.start + 100, end=e.end + 100) for e in measured]
    root = parsed(draw_svg(simulate(schedule), measured=later))
    upper, lower_lane = (with_class(root, f"lane {name}"[5:]) for name in ("predicted", "measured"))
    lanes = [lane for lane in (*upper, *lower_lane) if "lane" in lane.get("class", "")]
    assert [list(actions(boxes(lane))) for lane in lanes] == [["0F0", "0BW0"]] * 2
    assert [box.get("data-start") for box in boxes(lanes[1])] == ["0", "1.5"]
    assert "0.5 later than predicted" in (boxes(lanes[1])[1].findtext(f"{SVG}title") or "")
    # the axis is 3.5 units long
    assert float(root.get("data-width", "")) == pytest.approx(
        3.5 * float(root.get("data-per-unit", "")), abs=0.01
    )


def test_a_big_one_is_cut_and_says_so() -> None:
    timeline = [entry(0, f"0F{m}", m, m + 1) for m in range(100)]
    root = parsed(draw_svg(timeline, options=DrawingOptions(max_actions=30)))
    assert len(boxes(root)) == 30
    (note,) = with_class(root, "note")
    assert "time 0 to 30 of 0 to 100, 30 of 100 actions" in "".join(note.itertext())
    assert any("100 microbatches" in text for text in texts(root))


def test_a_window_shows_what_lies_in_it() -> None:
    timeline = [entry(0, f"0F{m}", m, m + 1) for m in range(10)]
    root = parsed(draw_svg(timeline, options=DrawingOptions(window=(2.5, 4.5))))
    assert list(actions(boxes(root))) == ["0F2", "0F3", "0F4"]
    scale = float(root.get("data-per-unit", ""))
    assert [rects(box)[0][2] for box in boxes(root)] == [scale / 2, scale, scale / 2]


def test_a_peak_outside_the_window_is_not_marked() -> None:
    timeline = [entry(0, "0F0", 0, 1), entry(0, "0F1", 1, 2), entry(0, "0BW0", 2, 4)]
    root = parsed(draw_svg(timeline, options=DrawingOptions(window=(3, 4))))
    assert len(with_class(root, "memory")) == 2  # the lane, and its name
    assert with_class(root, "peak") == []


def test_a_long_list_of_stages_is_shortened() -> None:
    schedule = build_schedule("interleaved-1f1b", 2, 2, chunks_per_rank=6)
    assert "stages 1, 3 … 11" in texts(parsed(draw_svg(simulate(schedule))))


def test_an_empty_timeline_is_an_empty_drawing() -> None:
    assert boxes(parsed(draw_svg([]))) == []


@pytest.mark.parametrize("window", [(3.0, 3.0), (4.0, 1.0)])
def test_a_window_must_end_after_it_begins(window: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="must end after it begins"):
        DrawingOptions(window=window)


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="must be 1 or more"):
        DrawingOptions(max_actions=0)
