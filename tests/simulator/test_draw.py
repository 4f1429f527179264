"""Drawings written out, and what holds for every one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from ppframe.errors import ConfigError
from ppframe.schedule import Action, Schedule, build_schedule, lower
from ppframe.simulator import Cost, TimelineEntry, draw, draw_terminal, drawing_width, simulate
from ppframe.simulator.palette import contrast
from tests.simulator.shapes import compute_only, costs, schedules


def drawn(name: str, ranks: int, microbatches: int, width: int, chunks: int = 1) -> str:
    schedule = build_schedule(name, ranks, microbatches, chunks_per_rank=chunks)
    return draw_terminal(simulate(schedule).timeline, width=width)


def assert_same_drawing(actual: str, wanted: str) -> None:
    lines = [line.strip() for line in wanted.strip().splitlines()]
    assert actual.splitlines() == lines, f"\n{actual}"


def test_a_wide_drawing_names_the_actions_in_full() -> None:
    schedule = compute_only("0F0 0F1 0BW0 0BW1", "1F0 1BW0 1F1 1BW1")
    wanted = """
        rank 0 │0F0 0F1 ········0BW0    ····0BW1    │
        rank 1 │····1F0 1BW0    1F1 1BW1    ········│
        F forward, BW backward, · idle, one column = 0.25
    """
    assert_same_drawing(draw_terminal(simulate(schedule).timeline, width=60), wanted)


def test_the_drawing_at_the_top_of_the_module_is_what_is_drawn() -> None:
    lines = drawn("1f1b", 2, 3, 80).splitlines()[:2]
    assert "\n".join(f"    {line}" for line in lines) in (draw.__doc__ or "")


def test_a_narrower_one_names_kind_and_microbatch() -> None:
    wanted = """
        rank 0 │F0F1F2F3············BW0 ··BW1 ··BW2 ··BW3 │
        rank 1 │··F0F1F2········BW0 F3BW1 ··BW2 ··BW3 ····│
        rank 2 │····F0F1····BW0 F2BW1 F3BW2 ··BW3 ········│
        rank 3 │······F0BW0 F1BW1 F2BW2 F3BW3 ············│
        F forward, BW backward, · idle, one column = 0.5
    """
    assert_same_drawing(drawn("1f1b", 4, 4, 60), wanted)


def test_the_narrowest_has_a_letter_per_action_and_digits_for_forwards() -> None:
    wanted = """
        rank 0 │0123······B0·B1·B2·B3│
        rank 1 │·012····B03B1·B2·B3··│
        rank 2 │··01··B02B13B2·B3····│
        rank 3 │···0B01B12B23B3······│
        F forward, BW backward,
        · idle, one column = 1
    """
    assert_same_drawing(drawn("1f1b", 4, 4, 30), wanted)


def test_lower_case_is_the_second_chunk() -> None:
    wanted = """
        rank 0 │F0F1f0f1F2··bw0 F3bw1 f2BW0 f3BW1 ··bw2 ··bw3 BW2 BW3 │
        rank 1 │··F0F1f0bw0 f1bw1 F2BW0 F3BW1 f2bw2 f3bw3 BW2 BW3 ····│
        F forward, BW backward, lower case: chunk 1, · idle, one column = 0.5
    """
    assert_same_drawing(drawn("dora-dfs", 2, 4, 80, chunks=2), wanted)
    wanted = """
        rank 0 │FFffF·b0Fb1fB0fB1·b2·b3B2B3│
        rank 1 │·FFfb0fb1FB0FB1fb2fb3B2B3··│
        F forward, BW backward,
        lower case: chunk 1, · idle,
        one column = 1
    """
    assert_same_drawing(drawn("dora-dfs", 2, 4, 40, chunks=2), wanted)


def test_of_more_than_two_chunks_the_whole_action_tells_which() -> None:
    drawing = drawn("dora-dfs", 2, 2, 150, chunks=3)
    assert drawing.startswith("rank 0 │0F0 0F1 2F0 2F1 4F0 4F1 ········4BW0")
    assert "lower case" not in drawing  # where whole actions are told, no letter is small
    assert "lower case: odd chunks" in drawn("dora-dfs", 2, 2, 60, chunks=3)


def test_what_does_not_fit_is_cut_and_says_so() -> None:
    wanted = """
        rank 0 │F0F1F2F3············B…
        rank 1 │··F0F1F2········BW0 3…
        rank 2 │····F0F1····BW0 F2BW1…
        rank 3 │······F0BW0 F1BW1 F2B…
        F forward, BW backward,
        · idle, one column = 0.5,
        cut at 10.5 of 33,
        the whole needs 42 columns
    """
    assert_same_drawing(drawn("1f1b", 4, 8, 30), wanted)


def test_the_width_that_is_said_to_be_needed_is_needed() -> None:
    timeline = simulate(build_schedule("1f1b", 4, 8)).timeline
    assert drawing_width(timeline) == 42
    assert "cut at" not in draw_terminal(timeline, width=42)
    assert "cut at" in draw_terminal(timeline, width=41)


def test_room_to_spare_widens_the_letters() -> None:
    assert drawn("1f1b", 4, 12, 120).startswith("rank 0 │F0F1F2F3············B0  F4B1  F5")
    assert drawn("1f1b", 4, 12, 90).startswith("rank 0 │FFFF······B0FB1FB2F")


def test_without_any_time_there_is_nothing_to_draw() -> None:
    nothing = "Nothing to draw: no action takes any time."
    assert draw_terminal([]) == nothing
    assert draw_terminal(simulate(compute_only("0F0 0BW0"), Cost(0, 0, 0)).timeline) == nothing


def test_transfers_are_idle_time() -> None:
    schedule = build_schedule("1f1b", 2, 2)
    cost = Cost(1, 1, 1, transfer=1)
    real, ideal = simulate(lower(schedule, reduce=True), cost), simulate(schedule, cost)
    assert real.makespan == ideal.makespan
    assert draw_terminal(real.timeline) == draw_terminal(ideal.timeline)


def test_split_backwards_and_pairs_have_letters_of_their_own() -> None:
    schedule = compute_only("0F0 (0F1;0BW0) 0B1 0W1")
    drawing = draw_terminal(simulate(schedule).timeline, width=60)
    assert drawing.startswith("rank 0 │0F0 (0F1;0BW0)  0B1 0W1 │")
    narrow = draw_terminal(simulate(schedule, Cost((1,), 1, 1)).timeline, width=30)
    assert "X overlapped pair" in narrow.replace("\n", " ")
    assert "W backward for the weights" in narrow


def test_an_action_too_short_to_show_is_counted_and_stretches_nothing() -> None:
    schedule = build_schedule("gpipe", 2, 4)
    report = simulate(schedule, Cost((0.001, 1), 1, 1))
    drawing = draw_terminal(report.timeline, width=60)
    assert max(map(len, drawing.splitlines())) <= 60
    assert "4 actions too short to show" in drawing.replace("\n", " ")
    assert "cut" not in drawing


def test_measured_times_are_drawn_from_the_first_start() -> None:
    spans = [(0, "0F0", 1000.0, 1000.1), (0, "0BW0", 1000.1, 1000.3)]
    timeline = [TimelineEntry(r, Action.parse(a), s, e) for r, a, s, e in reversed(spans)]
    assert draw_terminal(timeline).startswith("rank 0 │0F0 0BW0    │\n")


def test_ranks_from_ten_up_stand_in_line() -> None:
    lines = drawn("1f1b", 11, 1, 100).splitlines()
    assert lines[0].startswith("rank 0  │")
    assert lines[10].startswith("rank 10 │")


def test_markup_tells_kinds_and_chunks_by_colour() -> None:
    timeline = simulate(build_schedule("dora-dfs", 2, 4, chunks_per_rank=2)).timeline
    drawing = Text.from_markup(draw_terminal(timeline, width=44, markup=True))
    assert drawing.plain.splitlines()[0] == "rank 0 │01012·0 31 20 31 ·2 ·3 2 3 │"
    styles = {drawing.plain[s.start : s.end]: str(s.style) for s in reversed(drawing.spans)}
    by_cell = {(s.start, s.end): str(s.style) for s in drawing.spans}
    first_forward, second_chunk = by_cell[8, 9], by_cell[10, 11]
    backward = by_cell[14, 16]
    assert len({first_forward, second_chunk, backward}) == 3
    assert styles["F"] == first_forward
    assert "light: later chunks" in drawing.plain


def test_markup_has_a_colour_for_each_kind_and_chunk_on_which_letters_can_be_read() -> None:
    timeline = simulate(build_schedule("dora", 4, 8)).timeline
    drawing = Text.from_markup(draw_terminal(timeline, width=200, markup=True))
    styles = {str(span.style) for span in drawing.spans}
    assert len(styles) == 4 * 2
    for style in styles:
        letters, fill = style.split(" on ")
        assert contrast({"black": "#000000", "white": "#ffffff"}[letters], fill) >= 4.5


def test_overlapped_pairs_are_grey() -> None:
    timeline = [TimelineEntry(0, Action.parse("(0F1;1BW0)"), 0, 3)]
    drawing = Text.from_markup(draw_terminal(timeline, width=60, markup=True))
    fills = {str(span.style).split(" on ")[1] for span in drawing.spans}
    assert all(fill[1:3] == fill[3:5] == fill[5:7] for fill in fills)


def test_the_second_of_two_chains_is_in_lower_case() -> None:
    timeline = [
        TimelineEntry((m + stage) % 2, Action.parse(f"{stage}F{m}"), at, at + 1)
        for m in range(6)
        for stage in (0, 1)
        for at in [m - m % 2 + stage]
    ]
    wanted = """
        rank 0 │F0f1F2f3F4f5│
        rank 1 │f1F0f3F2f5F4│
        F forward,
        lower case: the other way,
        · idle, one column = 0.5
    """
    assert_same_drawing(draw_terminal(timeline, width=30), wanted)


@pytest.mark.parametrize("markup", [False, True])
def test_a_width_below_the_least_is_a_fault(markup: bool) -> None:
    with pytest.raises(ConfigError, match="at least 30, but is 29"):
        draw_terminal([], width=29, markup=markup)
    assert drawing_width([], markup=markup) == 30


@given(schedules(), st.integers(30, 200), st.booleans(), st.data())
def test_every_drawing_stays_within_its_width(
    schedule: Schedule, width: int, markup: bool, data: st.DataObject
) -> None:
    timeline = simulate(schedule, data.draw(costs(schedule.num_stages))).timeline
    drawing = draw_terminal(timeline, width=width, markup=markup)
    plain = Text.from_markup(drawing).plain if markup else drawing
    lines = plain.splitlines()
    assert max(map(len, lines)) <= width
    assert len({len(line) for line in lines[: schedule.ranks]}) == 1
    assert ("cut at" in plain) == (drawing_width(timeline, markup=markup) > width)
