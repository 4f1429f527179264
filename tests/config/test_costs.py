"""Costs in the configuration: what they give, who gets them, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ppframe import registry
from ppframe.build import build_cost, build_parts, build_pipeline
from ppframe.config.profiles import read_profile
from ppframe.errors import ConfigError
from ppframe.schedule import Schedule, build_schedule
from ppframe.schedule.cost import UNIT_COST, Cost
from tests.launching import TINY_MLP, by_path, composer, config_of, faults_with, vetted
from tests.profiles import made_profile, write_profile

PROFILED = (*TINY_MLP, "cost=profiled", "cost.path=profile.yaml")
GIVEN: list[Any] = []


def made_to_measure(
    ranks: int,
    microbatches: int,
    chunks_per_rank: int | None = None,
    *,
    cost: Cost | None = None,
    memory_limit: float | None = None,
) -> Schedule:
    """GPipe, whatever things cost; notes what it is given."""
    GIVEN.append((cost, memory_limit))
    return build_schedule("gpipe", ranks, microbatches)


@pytest.fixture
def own_schedule(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a schedule that takes a cost."""
    GIVEN.clear()
    entry = ("made-to-measure", made_to_measure)
    monkeypatch.setitem(registry._builders["schedule"], "made-to-measure", entry)
    return "schedule.name=made-to-measure"


def faults_of(*overrides: str, folder: Path) -> dict[str, str]:
    try:
        config_of(*overrides, folder=folder)
    except ConfigError as error:
        return by_path(error.faults)
    return {}


# What they give


def test_the_default_is_the_papers_unit_cost(tmp_path: Path) -> None:
    assert build_cost(config_of(folder=tmp_path)) == UNIT_COST


def test_numbers_of_ones_own_are_one_for_all_stages_or_one_for_each(tmp_path: Path) -> None:
    given = ("cost=per-stage", "cost.forward=[1,2,3,4]", "cost.transfer=0.5", "cost.time_unit=s")
    cost = build_cost(config_of(*TINY_MLP, *given, folder=tmp_path))
    assert cost == Cost((1, 2, 3, 4), 1, 1, transfer=0.5, time_unit="s")


def test_a_profile_is_a_cost_in_seconds(tmp_path: Path) -> None:
    numbers = {"forward": (0.25, 0.5, 0.75, 1.0), "weight_share": (0.0, 0.5, 1.0, 1.0)}
    profile = made_profile(*TINY_MLP, num_stages=4, folder=tmp_path, numbers=numbers)
    write_profile(tmp_path / "profile.yaml", profile)
    cost = build_cost(config_of(*PROFILED, folder=tmp_path))
    assert (cost.forward, cost.weight_share) == tuple(numbers.values())
    assert (cost.backward, cost.time_unit) == ((1.0,) * 4, "s")


def test_a_profile_is_the_same_after_a_file(tmp_path: Path) -> None:
    model = "model.chunks=[{_target_: torch.nn.Sequential, _args_: [{_target_: torch.nn.ReLU}]}]"
    one = (*TINY_MLP, model, "pipeline.ranks=1", "pipeline.chunks_per_rank=1")
    profile = made_profile(*one, "pipeline.partition=[1]", num_stages=1, folder=tmp_path)
    assert profile.made_for.model == ("torch.nn.Sequential(torch.nn.ReLU())",)
    write_profile(tmp_path / "profile.yaml", profile)
    assert read_profile(tmp_path / "profile.yaml") == profile


def test_what_is_imported_must_make_a_cost(tmp_path: Path) -> None:
    faults = faults_with({"cost": {"_target_": "builtins.dict"}}, folder=tmp_path)
    assert faults == {"cost": "must make a Cost, but makes a dict."}


# Who gets them


def test_a_schedule_that_takes_a_cost_gets_the_runs(own_schedule: str, tmp_path: Path) -> None:
    given = (own_schedule, "+schedule.memory_limit=2", "cost=per-stage", "cost.forward=[3,4]")
    config = config_of(*TINY_MLP, *given, folder=tmp_path)
    with build_pipeline(config, build_parts(config)) as pipeline:
        assert pipeline.schedule(6) == build_schedule("gpipe", 2, 6)
    # Without a cost it was only asked how many stages it has, as it declares no facts.
    assert GIVEN[-1] == (Cost((3, 4), 1, 1), 2.0)
    assert GIVEN.count(GIVEN[-1]) == 2  # checked, then built


def test_a_schedule_by_import_path_gets_it_too(tmp_path: Path) -> None:
    GIVEN.clear()
    target = f"{{_target_: {__name__}.made_to_measure}}"
    given = vetted(f"schedule={target}", "cost=per-stage")
    config = config_of(*TINY_MLP, *given, folder=tmp_path)
    with build_pipeline(config, build_parts(config)):
        assert GIVEN[-1] == (Cost(1, 1, 1), None)


def test_nobody_can_give_a_schedule_another_cost(own_schedule: str, tmp_path: Path) -> None:
    faults = faults_of(*TINY_MLP, own_schedule, "+schedule.cost=1", folder=tmp_path)
    assert list(faults) == ["schedule.cost"]
    assert "nearest first: memory_limit" in faults["schedule.cost"]


def test_stages_of_unequal_cost_change_a_schedule_that_is_searched(tmp_path: Path) -> None:
    # The middle stage is slow, so the last rank waits for each F and has time for W at once.
    slow = "[1,4,1]"
    given = ("cost=per-stage", f"cost.forward={slow}", f"cost.backward_input={slow}")
    tall = (*TINY_MLP, "schedule=zb-2p", "pipeline.ranks=3")
    rows = []
    for overrides in (tall, (*tall, *given)):
        config = config_of(*overrides, folder=tmp_path)
        with build_pipeline(config, build_parts(config)) as pipeline:
            rows.append(pipeline.schedule(6).actions)
    assert rows[0] != rows[1]
    assert [str(action) for action in rows[1][2]][:3] == ["2F0", "2B0", "2W0"]


# What is wrong with one


@pytest.mark.parametrize(
    ("key", "value", "path", "phrase"),
    [
        ("cost.forward", [1, -2], "cost.forward[1]", "0 or more, but is -2"),
        ("cost.forward", "long", "cost.forward", "a number or a list (each a number)"),
        ("cost.weight_share", -1, "cost.weight_share", "0 or more, but is -1"),
        ("cost.forwards", 1, "cost.forwards", "nearest first: forward"),
        ("cost.forward", [1, 1, 1], "cost.forward", "each of the 4 stages"),
        ("cost.backward", [1, 1, 1], "cost.backward", "but has 3"),
    ],
)
def test_a_number_that_no_cost_can_have_is_a_fault(
    key: str, value: Any, path: str, phrase: str, tmp_path: Path
) -> None:
    tree = composer().compose(["cost=per-stage"]).task
    numbers = {**tree.cost, key.partition(".")[2]: value}
    faults = faults_with({"cost": numbers}, folder=tmp_path)
    assert list(faults) == [path]
    assert phrase in faults[path]


def test_lists_of_different_lengths_are_a_fault(tmp_path: Path) -> None:
    given = ("cost=per-stage", "cost.forward=[1,1,1,1]", "cost.transfer=[1,1]")
    assert list(faults_of(*TINY_MLP, *given, folder=tmp_path)) == ["cost.transfer"]


def test_a_schedule_isnt_made_with_too_few_numbers(own_schedule: str, tmp_path: Path) -> None:
    given = (own_schedule, "cost=per-stage", "cost.forward=[1,1,1]")
    assert list(faults_of(*TINY_MLP, *given, folder=tmp_path)) == ["cost.forward"]
    assert set(GIVEN) == {(None, None)}


def test_faults_of_a_cost_hide_no_others(tmp_path: Path) -> None:
    given = ("cost=per-stage", "cost.forward=-1", "pipeline.ranks=40", "optimizer.lr=-1")
    faults = faults_of(*TINY_MLP, *given, folder=tmp_path)
    assert set(faults) == {"cost.forward", "pipeline.ranks", "optimizer.lr"}


def test_a_profile_that_isnt_there_is_a_fault(tmp_path: Path) -> None:
    faults = faults_of(*PROFILED, folder=tmp_path)
    assert list(faults) == ["cost.path"]
    assert f"{tmp_path}/profile.yaml gives: No such file" in faults["cost.path"]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("a: [1", "is not: "),
        ("- 1", "must be a mapping"),
        ("cost: {forward: 1}", "made_for: must be given"),
        ("cost: {forward: 1}", "cost.forward: must be a list (each a number), but is `1`"),
        ("cots: {}", "cots: must be a known key"),
    ],
)
def test_a_file_that_is_no_profile_is_told_all_that_is_wrong(
    text: str, phrase: str, tmp_path: Path
) -> None:
    (tmp_path / "profile.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_profile(tmp_path / "profile.yaml")
    assert {fault.path for fault in caught.value.faults} == {"cost.path"}
    assert phrase in str(caught.value)


@pytest.mark.parametrize(
    ("numbers", "phrase"),
    [
        ({"forward": (1.0, 1.0, 1.0)}, "cost.forward: must have 4 numbers, one per stage"),
        ({"weight_share": (1.0, -2.0, 1.0, 1.0)}, "cost.weight_share[1]: must be a finite number"),
    ],
)
def test_a_profile_has_one_legal_number_for_each_stage(
    numbers: dict[str, tuple[float, ...]], phrase: str, tmp_path: Path
) -> None:
    profile = made_profile(*TINY_MLP, num_stages=4, folder=tmp_path, numbers=numbers)
    write_profile(tmp_path / "profile.yaml", profile)
    with pytest.raises(ConfigError) as caught:
        read_profile(tmp_path / "profile.yaml")
    assert phrase in str(caught.value)


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (("model.dim=16",), "model.chunks[0] was `ppframe.models.mlp.Linear(in_features=4, "),
        (("model.depth=7",), "Linear(in_features=8, out_features=8, activation='relu') × 6` and"),
        (("model.chunks=[{_target_: torch.nn.ReLU, _repeat_: 4}]",), "was `ppframe"),
        (("pipeline.microbatch_size=4",), "microbatch size 4, but "),
        (("pipeline.recompute=full",), "recompute full, but "),
        (("pipeline.partition=parameters",), "partition parameters, but "),
        (("pipeline.partition=[2,2,2,2]",), "partition [2, 2, 2, 2], but "),
        (("pipeline.ranks=1", "pipeline.chunks_per_rank=4"), "ranks 1, but "),
        (("schedule=1f1b",), "must have a number for each of the 2 stages"),
        (("loss={_target_: torch.nn.L1Loss}",), "loss torch.nn.L1Loss, but "),
    ],
)
def test_a_profile_of_another_run_is_a_fault(
    change: tuple[str, ...], phrase: str, tmp_path: Path
) -> None:
    profile = made_profile(*TINY_MLP, num_stages=4, folder=tmp_path)
    write_profile(tmp_path / "profile.yaml", profile)
    last_of_each_key = {text.partition("=")[0]: text for text in (*PROFILED, *change)}
    faults = faults_of(*vetted(*last_of_each_key.values()), folder=tmp_path)
    assert list(faults) == ["cost.path"]
    assert phrase in faults["cost.path"]
    assert "Measure again with mode=profile" in faults["cost.path"]
