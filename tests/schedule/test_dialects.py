from __future__ import annotations

import logging

import pytest

from ppframe.errors import ScheduleError, ScheduleSyntaxError
from ppframe.schedule import Action, LoweredSchedule, Schedule
from ppframe.schedule.dialects import read_action, write_action


@pytest.mark.parametrize(
    ("ours", "torch"),
    [
        ("2F1", "2F1"),
        ("2B1", "2I1"),
        ("2W1", "2W1"),
        ("2BW1", "2B1"),
        ("2SEND_F1", "2SEND_F1"),
        ("2RECV_B1", "2RECV_B1"),
        ("2REDUCE", "2REDUCE_GRAD"),
        ("(0F1;3BW0)", "(0F1;3B0)OVERLAP_F_B"),
        ("(0F1;3B0)", "(0F1;3I0)OVERLAP_F_B"),
    ],
)
def test_torch_letters(ours: str, torch: str) -> None:
    assert write_action(Action.parse(ours), "torch") == torch
    assert read_action(torch, "torch") == Action.parse(ours)


@pytest.mark.parametrize(
    "text",
    ["2BW1", "2REDUCE_GRAD1", "2FULL_BACKWARD1", "2I", "I1", "2I1x", "(0F1;3BW0)OVERLAP_F_B"],
)
def test_what_torch_does_not_write_is_not_read_as_torch(text: str) -> None:
    with pytest.raises(ScheduleSyntaxError):
        read_action(text, "torch")


@pytest.mark.parametrize("text", ["2I1", "(0F1;3BW0)OVERLAP_F_B", "2REDUCE_GRAD"])
def test_torch_letters_are_not_ours(text: str) -> None:
    with pytest.raises(ScheduleSyntaxError):
        read_action(text, "ppframe")


def test_torch_has_no_word_for_an_exchange() -> None:
    with pytest.raises(ScheduleError, match="Lower without `group`"):
        write_action(Action.parse("2SEND_F3_2RECV_B1"), "torch")


@pytest.mark.parametrize("dialect", ["ppframe", "torch"])
@pytest.mark.parametrize("text", ["0UNSHARD", "12RESHARD", "0UNSHARD3"])
def test_sharding_is_dropped_with_a_notice(
    dialect: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="ppframe.schedule"):
        assert read_action(text, dialect) is None  # type: ignore[arg-type]
    assert f"Dropped `{text}`" in caplog.text


def test_a_file_of_torch_with_sharding_and_reductions_is_read() -> None:
    text = "0UNSHARD,0F0,0F1,,0RESHARD,0B0,0I1,0W1,0REDUCE_GRAD\r\n"
    lowered = LoweredSchedule.from_text(text, dialect="torch")
    assert [str(action) for action in lowered.actions[0]] == [
        *("0F0", "0F1", "0BW0", "0B1", "0W1", "0REDUCE")
    ]
    with pytest.raises(ScheduleSyntaxError, match="compute only"):
        Schedule.from_text(text, dialect="torch")
