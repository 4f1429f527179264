"""The whole configuration: what the files offer, and everything that can be wrong with a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ppframe.cli.folders import conf_folder
from ppframe.config import ChunkSpec, Component, Launch, Target, load_config
from ppframe.errors import ConfigError, Fault
from ppframe.registry import builder, names
from tests.launching import GONE, TINY_GPT, TINY_MLP, composer, config_of, faults_with, vetted

REGISTERED = ("cost", "data", "engine", "logger", "loss", "lr_schedule", "optimizer", "schedule")
SETS_OF_CHANGES = ("debug", "experiment", "hparams_search")


# What the files offer


def test_a_group_is_a_folder_and_a_kind_of_the_registry(tmp_path: Path) -> None:
    config_of(folder=tmp_path)  # registers everything
    folders = {path.name for path in conf_folder().iterdir() if path.is_dir()}
    assert folders - {"hydra", "local"} == {*REGISTERED, *SETS_OF_CHANGES, "model", "checkpoint"}
    assert set(composer().groups()) - {"local"} == folders - {"hydra", "local"}


@pytest.mark.parametrize("kind", [kind for kind in REGISTERED if kind != "logger"])
def test_every_registered_name_has_an_option_of_its_name(kind: str, tmp_path: Path) -> None:
    config_of(folder=tmp_path)
    own = {name for name in names(kind) if builder(kind, name).__module__.startswith("ppframe.")}
    assert own == set(composer().options(kind))


def test_defaults_are_a_run_of_two_ranks(tmp_path: Path) -> None:
    config = config_of(folder=tmp_path)
    assert (config.mode, config.seed, config.pipeline.ranks) == ("train", 0, 2)
    assert config.schedule == Component(name="dora-dfs", target=None, options={})
    assert config.pipeline.num_microbatches == 6
    assert type(config.optimizer.options["betas"]) is tuple
    assert set(config.logger) == {"console", "wandb"}
    assert config.model.num_modules >= 8  # four ranks of two chunks


def test_a_chunk_keeps_its_import_path_keywords_and_repeats(tmp_path: Path) -> None:
    config = config_of(*TINY_MLP, folder=tmp_path)
    target = Target(
        path="ppframe.models.mlp.Linear",
        kwargs={"in_features": 8, "out_features": 8, "activation": "relu"},
    )
    assert config.model.chunks[1] == ChunkSpec(target=target, repeat=6)


# The form it takes


def test_lists_become_plain_lists_and_tuples_and_nothing_else(tmp_path: Path) -> None:
    options = "{_target_: torch.optim.Adam, lr: 0.1, betas: [0.8, 0.9]}"
    config = config_of(*TINY_MLP, *vetted(f"optimizer={options}"), folder=tmp_path)
    assert config.optimizer == Component(
        name=None, target="torch.optim.Adam", options={"lr": 0.1, "betas": (0.8, 0.9)}
    )
    assert config.resolved["optimizer"]["betas"] == [0.8, 0.9]


def test_paths_are_relative_to_the_launch_folder(tmp_path: Path) -> None:
    (tmp_path / "model.pt").touch()
    config = config_of(*vetted("checkpoint=model.pt"), folder=tmp_path)
    assert config.checkpoint.path == tmp_path / "model.pt"
    assert config.resolved["checkpoint"]["path"] == str(tmp_path / "model.pt")


def test_a_sink_with_null_for_its_options_is_off(tmp_path: Path) -> None:
    assert set(config_of("logger.wandb=null", folder=tmp_path).logger) == {"console"}


def test_targets_may_stand_inside_options(tmp_path: Path) -> None:
    inner = "{_target_: torch.nn.Sequential, _args_: [{_target_: torch.nn.ReLU, inplace: true}]}"
    config = config_of(
        f"model.chunks=[{inner}]", "pipeline.ranks=1", "pipeline.chunks_per_rank=1", folder=tmp_path
    )
    relu = Target(path="torch.nn.ReLU", kwargs={"inplace": True})
    sequential = Target(path="torch.nn.Sequential", args=(relu,), kwargs={})
    assert config.model.chunks == (ChunkSpec(target=sequential),)


# Faults, one kind each


@pytest.mark.parametrize(
    ("key", "value", "path", "phrase"),
    [
        ("optimzer.lr", 1, "optimzer", "nearest first: optimizer"),
        ("pipeline.rank", 4, "pipeline.rank", "nearest first: ranks"),
        ("optimizer.foo", 1, "optimizer.foo", "Known, nearest first"),
        ("schedule.foo", 1, "schedule.foo", "There are no keys here"),
        ("model.dimm", 4, "model.dimm", "nearest first: dim"),
        ("model.chunks[1].headz", 4, "model.chunks[1].headz", "nearest first: heads"),
        ("logger.wand", {}, "logger.wand", "nearest first: wandb"),
        ("logger.console.every", 1, "logger.console.every", "every_steps"),
        ("steps", "ten", "steps", "a whole number of at least 1, but is the text `ten`"),
        ("steps", 1.5, "steps", "a whole number"),
        ("seed", 10**36, "seed", "of at least 0 and below 9223372036854775808, but is `1000"),
        ("clip_grad_norm", float("inf"), "clip_grad_norm", "a number above 0 or null"),
        ("optimizer.lr", float("inf"), "optimizer.lr", "finite"),
        ("trace", 1, "trace", "true or false"),
        ("clip_grad_norm", -1, "clip_grad_norm", "a number above 0 or null, but is `-1`"),
        ("mode", "trian", "mode", "`train` or `plan`"),
        ("optimizer.betas", [0.9], "optimizer.betas", "a list of 2"),
        ("schedule.name", "1f1c", "schedule.name", "nearest first: 1f1b"),
        ("optimizer._target_", "torch.optim.Adam", "optimizer", "has both"),
        ("loss.name", GONE, "loss", "has neither"),
        ("loss", {"_target_": "torch.nn.MSELos"}, "loss._target_", "`MSELoss`"),
        ("loss", {"_target_": "torch.pi"}, "loss._target_", "a class or function"),
        ("model.chunks", [], "model.chunks", "at least one"),
        ("model.chunks", [{"dim": 3}], "model.chunks[0]._target_", "must be given"),
        ("model.chunks[0]._repeat_", 0, "model.chunks[0]._repeat_", "at least 1"),
        ("model.chunks[0].dim", GONE, "model.chunks[0].dim", "must be given"),
        ("data.seq_len", "???", "data.seq_len", "Type `data.seq_len=VALUE`"),
        ("data.seq_len", GONE, "model.seq_len", "interpolation"),
        ("plugins", ["no_such_plugin"], "plugins[0]", "no module `no_such_plugin`"),
        ("pipeline.ranks", GONE, "pipeline.ranks", "must be given"),
        ("pipeline", 3, "pipeline", "must be a mapping"),
        ("model.dim", "abc", "model.dim", "a whole number, but is the text `abc`"),
        ("logger.wandb.project", 10.0, "logger.wandb.project", "in quotes, as it is written"),
        ("logger.wandb.tags", [True, "a", 10.0], "logger.wandb.tags", "Where an entry is a name"),
        ("schedule", "1f1b", "schedule", "search path; `schedule.name` takes"),
    ],
)
def test_a_fault_has_its_path_and_says_what_to_do(
    key: str, value: Any, path: str, phrase: str, tmp_path: Path
) -> None:
    faults = faults_with({key: value}, folder=tmp_path)
    assert path in faults
    assert phrase in faults[path]


def test_options_that_builders_refuse_are_faults_too(tmp_path: Path) -> None:
    values = {"optimizer.lr": -1, "engine.num_threads": 0, "logger.console.every_steps": 0}
    assert set(faults_with(values, folder=tmp_path)) == set(values)


def test_chunks_that_their_classes_refuse_are_told_beside_other_faults(tmp_path: Path) -> None:
    values = {"model.heads": 0, "model.depth": 0, "model.dim": -4}
    faults = faults_with(values, folder=tmp_path)
    assert set(faults) == {"model.depth", *(f"model.chunks[{index}]" for index in range(3))}
    assert all("at least 1" in message for message in faults.values())
    # What has a fault of its own is not tried.
    incomplete = {
        "model.dim": "wide",
        "model.chunks[0].seq_len": 0,
        "model.chunks[2].vocab_size": 0,
    }
    assert set(faults_with(incomplete, folder=tmp_path)) == {"model.dim"}


# Combinations


@pytest.mark.parametrize(
    ("values", "path", "phrase"),
    [
        ({"pipeline.microbatch_size": 32}, "pipeline.microbatch_size", "at most pipeline.batch"),
        ({"pipeline.ranks": 9}, "pipeline.ranks", "at most 4 ranks"),
        ({"pipeline.ranks": 1_000_000}, "pipeline.ranks", "at most 4 ranks"),
        ({"pipeline.chunks_per_rank": 1_000_000}, "pipeline.ranks", "Use far fewer chunks per"),
        (
            {"pipeline.batch_size": 10**9, "pipeline.microbatch_size": 1},
            "pipeline.microbatch_size",
            "at most 1048576 passes",
        ),
        ({"pipeline.partition": [1, 2]}, "pipeline.partition", "4 counts with sum 8"),
        (
            {"schedule.name": "1f1b", "pipeline.chunks_per_rank": 2},
            "pipeline.chunks_per_rank",
            "must be 1",
        ),
        ({"mode": "eval"}, "checkpoint.path", "Type `checkpoint=PATH`"),
        ({"checkpoint.path": "not/there.pt"}, "checkpoint.path", "not/there.pt"),
        ({"schedule": {"_target_": "builtins.dict"}}, "schedule._target_", "make a Schedule"),
    ],
)
def test_a_combination_that_cannot_run_is_a_fault(
    values: dict[str, Any], path: str, phrase: str, tmp_path: Path
) -> None:
    faults = faults_with(values, folder=tmp_path)
    assert list(faults) == [path]
    assert phrase in faults[path]


# All of them at once


def test_all_faults_are_listed_at_once_and_once_each(tmp_path: Path) -> None:
    tree = composer().compose(["data=text", *TINY_GPT[:3]]).task
    tree.model.dim = "wide"
    tree.pipeline.n_micro_batchs = 8
    tree.optimizer = {"_target_": "torch.optim.AdamWW"}
    tree.logger = {"wandb": {"project": 10.0}}
    tree.pipeline.ranks = 40
    tree.plugins = ["no_such_plugin"]
    tree.lr_schedule.floor = 2.0
    earlier = Fault("foo", "must be KEY=VALUE.")
    with pytest.raises(ConfigError) as caught:
        load_config(tree, Launch(folder=tmp_path, run_dir=tmp_path), faults=[earlier])
    paths = [fault.path for fault in caught.value.faults]
    assert sorted(paths) == [
        "data.path",
        "foo",
        "logger.wandb.project",
        "lr_schedule.floor",
        "model.dim",
        "optimizer._target_",
        "pipeline.n_micro_batchs",
        "pipeline.ranks",
        "plugins[0]",
    ]
    assert str(caught.value).startswith("9 faults")
