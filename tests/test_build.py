"""From a checked configuration to the objects of a run, and two steps of each option."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from ppframe.build import build_modules, build_parts, build_pipeline, misfits
from ppframe.cli.folders import conf_folder
from ppframe.cli.modes import run
from ppframe.config import Component
from ppframe.errors import ConfigError
from tests.launching import TINY_GPT, TINY_MLP, by_path, config_of, process_state
from tests.profiles import made_profile, write_profile

OPTIONS = sorted(
    f"{file.parent.name}={file.stem}"
    for file in conf_folder().glob("*/*.yaml")
    if file.parent.name not in ("hydra", "local", "hparams_search")
)
# Runs that between them have most options; an option that is in none of them has one of its own.
FOUR_MICROBATCHES = "0F0,0F1,0BW0,0F2,0BW1,0F3,0BW2,0BW3\n1F0,1BW0,1F1,1BW1,1F2,1BW2,1F3,1BW3\n"
DISABLED = "logger.wandb.mode=disabled"
TEXT = (*(text for text in TINY_GPT if "max_bytes" not in text), "data=text", "data.path=text.txt")
MLP_ON_PLAIN_PARTS = ("optimizer=sgd", "lr_schedule=constant", "checkpoint=none")
GPT_ON_PYLIB = ("model=gpt", "data=pylib", "loss=cross_entropy")
RUNS = (
    (*TINY_MLP, "logger=console", "schedule=gpipe", *MLP_ON_PLAIN_PARTS),
    (*TINY_MLP, "optimizer=adamw", "lr_schedule=cosine", "engine=local", "checkpoint=default"),
    (*TINY_GPT, *GPT_ON_PYLIB, "schedule=1f1b", "logger=default", DISABLED),
    (*TEXT, "schedule=interleaved-1f1b", "logger=wandb", DISABLED),
    (*TINY_MLP, "schedule=from-csv", "pipeline.batch_size=8", "schedule.path=four.csv"),
    (*TINY_MLP, "engine=torchrun", "pipeline.ranks=1"),
    (*TINY_MLP, "cost=profiled", "cost.path=profile.yaml"),
    (*TINY_MLP, "pipeline.microbatch_size=1", "schedule=stp"),
    (*TINY_GPT, "experiment=pylib-gpt"),
    ("experiment=reference", "debug=smoke", "logger=none"),
)
ALONE_UNDER_TORCHRUN = {
    "RANK": "0",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "0",
}
UNTIMED = (*TINY_MLP, "measure_every=null")  # drawing steps takes longer than doing them
ALONE = tuple((*UNTIMED, option) for option in OPTIONS if not any(option in run for run in RUNS))


@pytest.mark.parametrize("overrides", [*RUNS, *ALONE], ids=lambda run: run[-1])
def test_every_option_composes_builds_and_runs_two_steps(
    overrides: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ALONE_UNDER_TORCHRUN.items() if "engine=torchrun" in overrides else ():
        monkeypatch.setenv(name, value)
    (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 40)
    (tmp_path / "four.csv").write_text(FOUR_MICROBATCHES)
    if "cost=profiled" in overrides:
        profile = made_profile(*TINY_MLP, num_stages=4, folder=tmp_path)
        write_profile(tmp_path / "profile.yaml", profile)
    last_of_each_key = {text.partition("=")[0]: text for text in overrides}
    with process_state():
        summary = run(config_of(*last_of_each_key.values(), folder=tmp_path))
    assert (summary["status"], summary["steps"]) == ("finished", 2)
    assert summary["final_loss"] > 0
    assert (tmp_path / "config.yaml").is_file()


def parameters(*overrides: str, folder: Path) -> list[torch.Tensor]:
    modules = build_modules(config_of(*TINY_MLP, "model.depth=6", *overrides, folder=folder))
    return [p.detach() for module in modules for p in module.parameters()]


def test_parameters_depend_on_seed_and_place_alone(tmp_path: Path) -> None:
    first = parameters("seed=3", folder=tmp_path)
    layout = ("pipeline.ranks=4", "schedule=gpipe", "pipeline.chunks_per_rank=1")
    again = parameters("seed=3", *layout, folder=tmp_path)
    other = parameters("seed=4", folder=tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    pairs = [(a, b) for a, b in zip(first, other, strict=True) if a.ndim > 1]  # offsets start at 0
    assert pairs
    assert not any(torch.equal(a, b) for a, b in pairs)


def test_repeated_chunks_differ_from_each_other(tmp_path: Path) -> None:
    weights = [p for p in parameters(folder=tmp_path) if p.shape == (8, 8)]
    assert not torch.equal(weights[0], weights[1])


def test_building_leaves_the_random_generators_alone(tmp_path: Path) -> None:
    config = config_of(*TINY_MLP, folder=tmp_path)

    states = [random.getstate(), torch.get_rng_state().tolist(), str(numpy.random.get_state())]
    build_modules(config)
    now = [random.getstate(), torch.get_rng_state().tolist(), str(numpy.random.get_state())]
    assert now == states


def test_modules_for_a_plan_take_no_memory(tmp_path: Path) -> None:
    modules = build_modules(config_of(*TINY_MLP, folder=tmp_path), "meta")
    assert {p.device.type for module in modules for p in module.parameters()} == {"meta"}


def test_a_null_number_of_chunks_is_the_schedules_own(tmp_path: Path) -> None:
    config = config_of(*TINY_MLP, folder=tmp_path)
    with build_pipeline(config, build_parts(config)) as pipeline:
        assert (pipeline.ranks, pipeline.chunks_per_rank, pipeline.num_stages) == (2, 2, 4)


def test_every_part_that_refuses_its_options_is_listed(tmp_path: Path) -> None:
    refused = ["data.max_bytes=0", "model.heads=3"]
    config = config_of(*TINY_GPT, *refused, folder=tmp_path)
    with pytest.raises(ConfigError) as caught:
        build_parts(config)
    assert set(by_path(caught.value.faults)) == {"model.chunks[1]", "data.max_bytes"}


def test_a_chunk_that_cannot_be_built_is_named_with_its_error(tmp_path: Path) -> None:
    broken = "[{_target_: torch.nn.Linear, in_features: -2, out_features: 3, _repeat_: 8}]"
    config = config_of(*TINY_MLP, f"model.chunks={broken}", folder=tmp_path)
    with pytest.raises(ConfigError, match="negative dimension") as caught:
        build_modules(config)
    assert [fault.path for fault in caught.value.faults] == ["model.chunks[0]"]


@pytest.mark.parametrize(
    ("field", "target", "phrase"),
    [
        ("data", "builtins.object", "data: must make a Dataset, but makes a object"),
        ("lr_schedule", "builtins.object", "lr_schedule: must make something to call"),
        ("loss", "builtins.object", "loss: must make something to call"),
        ("optimizer", "torch.nn.ReLU", "optimizer._target_: must be a subclass"),
    ],
)
def test_a_part_of_the_wrong_kind_is_refused(
    field: str, target: str, phrase: str, tmp_path: Path
) -> None:
    changes: dict[str, Any] = {field: Component(name=None, target=target, options={})}
    config = replace(config_of(*TINY_MLP, folder=tmp_path), **changes)
    with pytest.raises(ConfigError) as caught:
        build_parts(config)
    assert phrase in str(caught.value)


def test_data_model_and_loss_that_fit_have_no_misfit(tmp_path: Path) -> None:
    for tiny in (TINY_MLP, TINY_GPT):
        config = config_of(*tiny, folder=tmp_path)
        assert misfits(config, build_parts(config, "meta")) == []


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ((*TINY_MLP, "model.in_features=5"), "model.chunks[0]"),
        ((*TINY_MLP, "model.chunks.1.out_features=5"), "model.chunks[1]"),
        ((*TINY_MLP, "loss=cross_entropy"), "loss"),
        ((*TINY_GPT, "loss=mse"), "loss"),
        ((*TINY_GPT, "loss.class_weights=[1,2]"), "loss"),
        ((*TINY_GPT, "model.seq_len=4"), "model.seq_len"),
        ((*TINY_GPT, "+model.chunks.0.vocab_size=60"), "model.chunks[0]"),
        ((*TINY_GPT, "+model.chunks.2.vocab_size=60"), "loss"),
    ],
)
def test_what_does_not_fit_is_found_without_running_it(
    overrides: tuple[str, ...], path: str, tmp_path: Path
) -> None:
    last_of_each_key = {text.partition("=")[0]: text for text in overrides}
    config = config_of(*last_of_each_key.values(), folder=tmp_path)
    (fault,) = misfits(config, build_parts(config, "meta"))
    assert fault.path == path
