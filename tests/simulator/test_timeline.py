import pytest

from ppframe.schedule import Action
from ppframe.simulator import TimelineEntry


@pytest.mark.parametrize(
    ("text", "name", "computes"),
    [
        ("2F0", "r1/2_F_0", True),
        ("5BW12", "r1/5_BW_12", True),
        ("(0F1;3BW0)", "r1/0_F_1&3_BW_0", True),
        ("2SEND_F3", "r1/2_SEND_F_3", False),
        ("2RECV_B3", "r1/2_RECV_B_3", False),
        ("2SEND_F3_2RECV_B1", "r1/2_SEND_F_3&2_RECV_B_1", False),
        ("2REDUCE", "r1/2_REDUCE", False),
    ],
)
def test_an_entry_is_named_by_rank_stage_kind_and_microbatch(
    text: str, name: str, computes: bool
) -> None:
    entry = TimelineEntry(1, Action.parse(text), 0.0, 1.0)
    assert entry.name == name
    assert entry.is_compute is computes


def test_an_entry_lasts_from_its_start_to_its_end() -> None:
    assert TimelineEntry(0, Action.parse("0F0"), 1.5, 4.0).duration == 2.5
