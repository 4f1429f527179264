"""The command line vetted before Hydra sees it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hydra._internal.utils import get_args_parser

from ppframe.cli.composer import Composer
from ppframe.cli.overrides import Vetted, vet
from tests.launching import by_path, composer, process_state


def vetting(*overrides: str, sweeping: bool = False, folder: Path) -> Vetted:
    with process_state():
        return vet(overrides, composer(), folder, sweeping=sweeping)


def test_what_is_plain_is_written_as_hydra_takes_it(tmp_path: Path) -> None:
    meanings = {
        "steps=5": ["steps=5"],
        "+seed=5": ["++seed=5"],
        "optimizer.amsgrad=true": ["++optimizer.amsgrad=true"],
        "+optimizer.foreach=true": ["+optimizer.foreach=true"],
        "optimzer.lr=1": ["++optimzer.lr=1"],
        "logger={wandb: {project: x}}": ["++logger={wandb: {project: x}}"],
        "experiment=null": ["~experiment"],
        "+optimizer=sgd": ["optimizer=sgd"],
        "schedule=DORA_dfs": ["schedule=dora-dfs"],
        "loss={_target_: x.Y}": ["~loss", "+loss={_target_: x.Y}"],
    }
    vetted = vetting(*meanings, folder=tmp_path)
    assert vetted.faults == ()
    assert list(vetted.overrides) == [text for texts in meanings.values() for text in texts]


@pytest.mark.parametrize(
    ("typed", "rewritten"),
    [
        ("checkpoint=none", "checkpoint=none"),
        ("checkpoint=null", "checkpoint.path=null"),
        ("checkpoint=a=b c/x,y.pt", "checkpoint.path='a=b c/x,y.pt'"),
        ("checkpoint=1e1", "checkpoint.path='1e1'"),
    ],
)
def test_a_checkpoint_is_an_option_or_a_path(typed: str, rewritten: str, tmp_path: Path) -> None:
    assert vetting(typed, folder=tmp_path).overrides == (rewritten,)


def test_names_stay_names(tmp_path: Path) -> None:
    vetted = vetting(
        "logger.wandb.project=1e1",
        "logger.wandb.group=on",
        "logger.wandb.tags=[on, 012, 'a b', 1e1]",
        "logger.wandb.entity=null",
        "plugins=[true]",
        "optimizer.lr=1e1",
        "data.seq_len=16",
        "pipeline.partition=[2,2,2,2]",
        "model.chunks.0.dim=32",
        folder=tmp_path,
    )
    assert list(vetted.overrides) == [
        "logger.wandb.project='1e1'",
        "logger.wandb.group=on",
        "logger.wandb.tags=[on,012,'a b','1e1']",
        "logger.wandb.entity=null",
        "plugins=['true']",
        "optimizer.lr=1e1",
        "data.seq_len=16",
        "pipeline.partition=[2,2,2,2]",
        "model.chunks.0.dim=32",
    ]


def test_names_stay_names_in_a_sweep(tmp_path: Path) -> None:
    vetted = vetting("logger.wandb.group=1e1,on,a", "seed=1,2", sweeping=True, folder=tmp_path)
    assert list(vetted.overrides) == ["logger.wandb.group=choice('1e1',on,a)", "seed=1,2"]
    assert len(vetted.runs) == 3


def test_text_that_breaks_the_grammar_is_taken_where_a_text_belongs(tmp_path: Path) -> None:
    vetted = vetting("logger.wandb.project=a=b (c", "steps==3", folder=tmp_path)
    assert list(vetted.overrides) == ["logger.wandb.project='a=b (c'"]
    assert list(by_path(vetted.faults)) == ["steps==3"]


def test_every_fault_is_noted_and_its_override_left_out(tmp_path: Path) -> None:
    phrases = {
        "foo": ("foo", "KEY=VALUE"),
        "schedule=1f1c": ("schedule", "Nearest first: 1f1b"),
        "experiment=nope": ("experiment", "one of the group's options"),
        "seed=1,2": ("seed", "Add -m"),
        "steps=range(3)": ("steps", "Add -m"),
        "~optimizer.lrr": ("optimizer.lrr", "nearest first: lr"),
        "~optimzer": ("optimzer", "must be a known key"),
        "hydra.run.dirr=x": ("hydra.run.dirr", "nearest first: dir"),
        "model.chunks.9.dim=3": ("model.chunks.9.dim", "`model.chunks`, which has 3"),
        "optimizer.lr=${": ("optimizer.lr", "an interpolation such as ${steps}"),
        "=5": ("=5", "KEY=VALUE"),
    }
    vetted = vetting(*phrases, "trace=true", folder=tmp_path)
    assert vetted.overrides == ("trace=true",)
    faults = by_path(vetted.faults)
    assert set(faults) == {path for path, _ in phrases.values()}
    assert all(phrase in faults[path] for path, phrase in phrases.values())


@pytest.mark.parametrize("content", [b"name: [mse", b"name: mse\n# \xff\n"])
def test_a_broken_file_hides_no_other_fault_and_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "conf" / "loss").mkdir(parents=True)
    (tmp_path / "conf" / "loss" / "broken.yaml").write_bytes(content)
    overrides = ("loss=broken", "loss.foo=1", "steps==3", "trace=true")
    with process_state():
        os.chdir(tmp_path)
        own = Composer.from_arguments(get_args_parser().parse_args([]))
        vetted = vet(overrides, own, tmp_path, sweeping=False)
    faults = by_path(vetted.faults)
    assert set(faults) == {"loss", "steps==3"}
    assert "broken.yaml" in faults["loss"]
    assert vetted.overrides == ("trace=true",)


def test_an_option_of_a_group_is_checked_in_every_job_of_a_sweep(tmp_path: Path) -> None:
    vetted = vetting("schedule=gpipe,1f1c", "loss=glob(*)", sweeping=True, folder=tmp_path)
    assert list(by_path(vetted.faults)) == ["schedule"]
    assert list(vetted.overrides) == ["loss=glob(*)"]


def test_a_key_of_some_jobs_only_reaches_them_all(tmp_path: Path) -> None:
    vetted = vetting("optimizer=sgd,adamw", "optimizer.eps=1e-6", sweeping=True, folder=tmp_path)
    assert list(vetted.overrides) == ["optimizer=sgd,adamw", "++optimizer.eps=1e-6"]


def test_an_option_may_ask_for_a_sweep_itself(tmp_path: Path) -> None:
    assert vetting("hparams_search=seeds-and-rates", folder=tmp_path).sweeps
    assert not vetting("experiment=reference", folder=tmp_path).sweeps


def test_names_of_a_plugin_are_known(tmp_path: Path) -> None:
    (tmp_path / "vetted_plugin.py").write_text(
        "from ppframe.registry import register\n"
        "@register('lr_schedule', 'vetted')\n"
        "def vetted(*, label: str = ''):\n"
        "    return lambda step, total: 1.0\n"
    )
    whole: Sequence[str] = ("plugins=[vetted_plugin]", "lr_schedule={name: vetted}")
    vetted = vetting(*whole, "lr_schedule.label=1e1", folder=tmp_path)
    assert "++lr_schedule.label='1e1'" in vetted.overrides
