"""The CSV form: round trips, and faults with line and column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from ppframe.errors import ScheduleError, ScheduleSyntaxError
from ppframe.schedule import LoweredSchedule, Placement, Schedule, lower
from tests.schedule.drawings import compute, lowered
from tests.strategies import quick, schedules

ONE = "0F0,0BW0\n"


@quick
@given(schedules())
def test_compute_only_round_trips(schedule: Schedule) -> None:
    assert Schedule.from_text(schedule.to_text()) == schedule
    assert Schedule.from_text(schedule.to_text("torch"), dialect="torch") == schedule


@quick
@given(schedules(max_ranks=4, max_microbatches=6))
def test_lowered_round_trips(schedule: Schedule) -> None:
    plain = lower(schedule, reduce=True)
    assert LoweredSchedule.from_text(plain.to_text()) == plain
    assert LoweredSchedule.from_text(plain.to_text("torch"), dialect="torch") == plain
    grouped = lower(schedule, group=True)
    assert LoweredSchedule.from_text(grouped.to_text()) == grouped


def test_pairs_round_trip_in_both_dialects() -> None:
    pairs = compute("0F0 (0F1;0BW0) 0BW1")
    assert pairs.to_text("torch") == "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"
    assert Schedule.from_text(pairs.to_text("torch"), dialect="torch") == pairs
    assert Schedule.from_text(pairs.to_text()) == pairs


def test_files_round_trip_and_give_their_name(tmp_path: Path) -> None:
    schedule = compute("0F0 0BW0", "1F0 1BW0")
    schedule.to_csv(tmp_path / "mine.csv")
    read = Schedule.from_csv(tmp_path / "mine.csv")
    assert (tmp_path / "mine.csv").read_bytes() == b"0F0,0BW0\n1F0,1BW0\n"
    assert (read, read.name) == (schedule, "mine")
    lower(schedule).to_csv(tmp_path / "low.csv", dialect="torch")
    assert LoweredSchedule.from_csv(tmp_path / "low.csv", dialect="torch") == lower(schedule)


def test_a_name_does_not_make_schedules_different() -> None:
    schedule = compute("0F0 0BW0")
    assert replace(schedule, name="other") == schedule


def test_a_forward_only_file_is_read_as_such_when_asked(tmp_path: Path) -> None:
    schedule = compute("0F0", "1F0", forward_only=True)
    schedule.to_csv(tmp_path / "f.csv")
    assert Schedule.from_csv(tmp_path / "f.csv", forward_only=True) == schedule
    assert Schedule.from_csv(tmp_path / "f.csv") != schedule
    assert LoweredSchedule.from_text(lower(schedule).to_text(), forward_only=True).forward_only


@pytest.mark.parametrize(
    "text",
    [
        "0F0,0BW0",
        "0F0,0BW0\r\n",
        "0F0,0BW0\r",
        "\ufeff0F0,0BW0\n",
        "0F0,0BW0\n\n\n",
        "0F0,0BW0\n,,\n",
        ",0F0,,,0BW0,\n",
        " 0F0 ,\t0BW0 \n",
    ],
)
def test_line_ends_marks_blanks_and_empty_cells_do_not_matter(text: str) -> None:
    assert Schedule.from_text(text) == Schedule.from_text(ONE)


@pytest.mark.parametrize(
    ("owners", "text"),
    [
        ((0, 1, 0, 1), "0F0,2F0,2BW0,0BW0\n1F0,3F0,3BW0,1BW0\n"),
        ((0, 1, 1, 0), "0F0,3F0,3BW0,0BW0\n1F0,2F0,2BW0,1BW0\n"),
        ((1, 0), "1F0,1BW0\n0F0,0BW0\n"),
    ],
)
def test_the_placement_is_seen_from_who_computes_what(owners: tuple[int, ...], text: str) -> None:
    assert Schedule.from_text(text).placement == Placement(owners)


@pytest.mark.parametrize(
    "cell", ["0BW", "F0", "0F0garbage", "-1F0", "0F1000000000", '"0F0"', "0I0"]
)
@pytest.mark.parametrize("column", [1, 5, 14])
def test_a_cell_that_is_no_action_is_named_with_line_and_column(cell: str, column: int) -> None:
    step = {1: 0, 5: 1, 14: 2}[column]
    line = {1: f"{cell},1F0", 5: f"1F0,{cell}", 14: f"1F0, ,,1BW0 ,{cell}"}[column]
    with pytest.raises(ScheduleSyntaxError, match=f"line 2, column {column}") as caught:
        Schedule.from_text(f"0F0,0BW0\n{line}\n")
    error = caught.value
    assert (error.line, error.column, error.rank, error.step) == (2, column, 1, step)
    assert error.action == cell


@pytest.mark.parametrize(
    ("text", "line", "column", "action", "phrase"),
    [
        ("", 1, 1, None, "empty"),
        ("\n\n", 1, 1, None, "empty"),
        ("0F0,0BW0\n\n1F0,1BW0", 2, 1, None, "holds none"),
        ("0F0,0BW0\n,,\n1F0,1BW0", 2, 1, None, "holds none"),
        ("0F0,0BW0\n2F0,2BW0", 2, 1, "2F0", "without gaps"),
        ("0F0,0BW0\n0F1,0BW1,1F0,1BW0,1F1,1BW1", 2, 1, "0F1", "one rank"),
        ("0F0,0BW0,0F1,0BW1\n1F0,1BW0,0BW1", 2, 10, "0BW1", "one rank"),
        ("0F0,0BW0,1F1\n1F0,1BW0,1BW1", 1, 10, "1F1", "one rank"),
        ("0F0,0SEND_F0\n1F0", 1, 5, "0SEND_F0", "compute only"),
        ("0F0,0REDUCE", 1, 5, "0REDUCE", "compute only"),
        ("999999999F0", 1, 1, "999999999F0", "without gaps"),
    ],
)
def test_a_text_that_is_no_schedule_is_rejected(
    text: str, line: int, column: int, action: str | None, phrase: str
) -> None:
    with pytest.raises(ScheduleSyntaxError, match=phrase) as caught:
        Schedule.from_text(text)
    assert (caught.value.line, caught.value.column, caught.value.action) == (line, column, action)


def test_a_lowered_text_gives_every_rank_a_computation_and_every_stage_a_rank() -> None:
    with pytest.raises(ScheduleSyntaxError, match="owns a stage"):
        LoweredSchedule.from_text("0F0,0BW0\n0RECV_F0\n")
    with pytest.raises(ScheduleSyntaxError, match="without gaps"):
        LoweredSchedule.from_text("0F0,0BW0,3SEND_F0\n")
    with pytest.raises(ScheduleSyntaxError, match="without gaps"):
        LoweredSchedule.from_text("1SEND_F0,0F0,0BW0\n2F0,2BW0\n")


def test_bytes_that_are_no_text_are_named_with_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(b"0F0,0BW0\n1F0,\xff")
    with pytest.raises(ScheduleSyntaxError, match="UTF-8") as caught:
        Schedule.from_csv(tmp_path / "bad.csv")
    assert (caught.value.line, caught.value.column) == (2, 5)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Schedule.from_csv(tmp_path / "none.csv")


def test_unknown_dialects_are_rejected() -> None:
    with pytest.raises(ScheduleError, match="`ppframe` or `torch`, but is `other`"):
        compute("0F0 0BW0").to_text("other")  # type: ignore[arg-type]


def test_the_number_of_lists_is_that_of_the_ranks() -> None:
    with pytest.raises(ScheduleError, match=r"each of the 2 ranks of its placement, but has 1"):
        compute("0F0 0BW0", owners=(0, 1))
    with pytest.raises(ScheduleError, match="but has 1"):
        lowered("0F0 0BW0", owners=(0, 1))
