"""The rule, case by case; expected values are SCHEDULES' conventions written out."""

from __future__ import annotations

import pytest

from ppframe.errors import ScheduleError
from ppframe.schedule import Action, ActionKind, dependencies
from ppframe.schedule.dependencies import needs_of
from ppframe.schedule.slots import Slots


def needs(text: str, **options: object) -> list[str]:
    found = dependencies(Action.parse(text), 4, **options)  # type: ignore[arg-type]
    return [" or ".join(map(str, alternatives)) for alternatives in found]


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        ("0F5", []),
        ("2F5", ["1F5"]),
        ("3BW5", ["3F5"]),
        ("1BW5", ["1F5", "2B5 or 2BW5"]),
        ("1B5", ["1F5", "2B5 or 2BW5"]),
        ("3B5", ["3F5"]),
        ("1W5", ["1B5"]),
        ("(0F1;3BW0)", ["3F0"]),
        ("(2F1;1BW0)", ["1F1", "1F0", "2B0 or 2BW0"]),
    ],
)
def test_in_a_compute_only_schedule_stages_hand_over_directly(
    action: str, wanted: list[str]
) -> None:
    assert needs(action) == wanted


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        ("0F5", []),
        ("2F5", ["2RECV_F5"]),
        ("3BW5", ["3F5"]),
        ("1B5", ["1F5", "1RECV_B5"]),
        ("1W5", ["1B5"]),
        ("1SEND_F5", ["1F5"]),
        ("2RECV_F5", ["1SEND_F5"]),
        ("2SEND_B5", ["2B5 or 2BW5"]),
        ("1RECV_B5", ["2SEND_B5"]),
        ("1SEND_F5_1RECV_B2", ["1F5", "2SEND_B2"]),
    ],
)
def test_where_transfers_carry_it_a_stage_needs_its_receive(action: str, wanted: list[str]) -> None:
    assert needs(action, carried=lambda stage: True) == wanted


def test_only_the_boundaries_that_are_carried_have_receives() -> None:
    assert needs("2F0", carried=lambda stage: stage != 1) == ["1F0"]
    assert needs("1BW0", carried=lambda stage: stage != 1) == ["1F0", "2B0 or 2BW0"]
    assert needs("3F0", carried=lambda stage: stage != 1) == ["3RECV_F0"]


def test_a_reduction_needs_the_last_backward_part_of_every_microbatch() -> None:
    assert needs("1REDUCE", num_microbatches=2) == ["1W0 or 1BW0", "1W1 or 1BW1"]


def test_the_rule_is_for_kinds_of_one_stage_and_microbatch() -> None:
    with pytest.raises(ScheduleError, match="one stage and one microbatch"):
        needs_of(ActionKind.REDUCE, 0, 4)


def test_slots_number_what_is_left_without_gaps_or_repeats() -> None:
    slots = Slots(num_stages=3, num_microbatches=5)
    left = {
        base + microbatch
        for per_stage in slots.left_by.values()
        for bases in per_stage
        for base in bases
        for microbatch in range(5)
    }
    assert left == set(range(slots.count))
    for slot in range(slots.count):
        need, microbatch = slots.meaning(slot)
        assert slots.base_of(need) + microbatch == slot
