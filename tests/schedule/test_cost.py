from dataclasses import replace

import pytest

from ppframe.errors import ConfigError
from ppframe.schedule.cost import UNIT_COST, Cost


def faults_of(*args: object, **kwargs: object) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        Cost(*args, **kwargs)  # type: ignore[arg-type]
    return {fault.path: fault.message for fault in caught.value.faults}


def test_fields_take_numbers_or_a_number_per_stage() -> None:
    cost = Cost(1, [2, 3], (4, 5), transfer=0.5)
    assert cost.forward == 1.0
    assert cost.backward_input == (2.0, 3.0)
    assert cost.of_stages("forward", 2) == (1.0, 1.0)
    assert cost.of_stages("backward_weight", 2) == (4.0, 5.0)


def test_what_is_not_given_costs_nothing_and_w_keeps_everything() -> None:
    cost = Cost(1, 1, 1)
    nothing = ("transfer", "activation_bytes", "weight_bytes")
    assert [cost.of_stages(name, 1) for name in nothing] == [(0.0,)] * 3
    assert cost.of_stages("weight_share", 1) == (1.0,)


def test_a_full_backward_takes_both_parts_unless_given() -> None:
    assert Cost(1, (2, 3), 0.5).of_stages("backward", 2) == (2.5, 3.5)
    assert Cost(1, 2, (0.5, 1)).of_stages("backward", 2) == (2.5, 3.0)
    assert Cost(1, 2, 3, backward=4).of_stages("backward", 2) == (4.0, 4.0)


def test_costs_are_values() -> None:
    assert Cost(1, [1, 2], 1) == Cost(1.0, (1.0, 2.0), 1.0)
    assert len({Cost(1, 1, 1), Cost(1, 1, 1)}) == 1


def test_the_number_of_stages_is_that_of_the_lists() -> None:
    assert Cost(1, 1, 1).num_stages is None
    assert Cost(1, 1, (1, 2, 3)).num_stages == 3


@pytest.mark.parametrize("wrong", [-1, float("inf"), float("nan"), "1", True, None, 1j, b"\x01"])
def test_a_cost_that_is_no_finite_number_from_0_is_a_fault(wrong: object) -> None:
    assert list(faults_of(wrong, 1, 1)) == ["cost.forward"]
    assert "finite number, 0 or more" in faults_of(1, 1, wrong)["cost.backward_weight"]


def test_a_wrong_number_in_a_list_is_named_by_its_stage() -> None:
    faults = faults_of([1, -2, "x"], 1, 1)
    assert list(faults) == ["cost.forward[1]", "cost.forward[2]"]
    assert "is -2" in faults["cost.forward[1]"]


def test_lists_hold_numbers_not_lists() -> None:
    assert list(faults_of([[1, 2]], 1, 1)) == ["cost.forward[0]"]


def test_an_empty_list_is_a_fault() -> None:
    assert "empty" in faults_of(1, 1, 1, transfer=[])["cost.transfer"]


def test_b_may_leave_more_than_it_found_but_not_less_than_nothing() -> None:
    assert Cost(1, 1, 1, weight_share=1.5).weight_share == 1.5
    assert list(faults_of(1, 1, 1, weight_share=-0.5)) == ["cost.weight_share"]


def test_all_faults_are_listed_at_once() -> None:
    faults = faults_of(-1, 1, "x", transfer=float("nan"))
    assert list(faults) == ["cost.forward", "cost.backward_weight", "cost.transfer"]


def test_lists_of_different_lengths_are_a_fault() -> None:
    faults = faults_of((1, 2), 1, (1, 2, 3), transfer=(1,))
    assert list(faults) == ["cost.backward_weight", "cost.transfer"]
    assert "must give 2 numbers as `forward` does, but gives 3" in faults["cost.backward_weight"]


def test_another_number_of_stages_than_the_schedules_is_a_fault() -> None:
    with pytest.raises(ConfigError, match=r"cost.forward: must give one number per stage.*3"):
        Cost((1, 2), 1, 1).of_stages("forward", 3)


def test_times_can_have_a_unit_which_is_no_number() -> None:
    cost = Cost(1, 1, 1, time_unit="s")
    assert cost.time_unit == "s"
    assert "time_unit" not in Cost.numbers()
    assert (Cost.numbers()[0], len(Cost.numbers())) == ("forward", 8)


@pytest.mark.parametrize(
    ("cost", "has_bytes"),
    [
        (Cost(1, 1, 1), False),
        (Cost(1, 1, 1, activation_bytes=(0, 0), weight_share=0.5), False),
        (Cost(1, 1, 1, activation_bytes=(0, 3)), True),
        (Cost(1, 1, 1, weight_bytes=2), True),
    ],
)
def test_a_cost_knows_whether_it_says_anything_of_bytes(cost: Cost, has_bytes: bool) -> None:
    assert cost.has_bytes is has_bytes


def test_the_unit_cost_is_one_forward_for_each_part() -> None:
    assert replace(UNIT_COST, time_unit="") == Cost(1, 1, 1)
    assert UNIT_COST.time_unit == "forwards"
