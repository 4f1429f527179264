"""The local engine gives devices, runs the work, and turns signals into exceptions."""

from __future__ import annotations

import signal

import pytest
import torch

from ppframe.engine import LocalEngine
from ppframe.errors import ConfigError
from ppframe.registry import builder
from ppframe.training.interrupt import Terminated


def test_work_gets_a_device_for_each_rank_and_gives_its_result():
    engine = builder("engine", "local")(device="cpu")
    result = engine.run(lambda ranks: [str(d) for d in ranks.devices], num_ranks=3, seed=0)
    assert result == ["cpu", "cpu", "cpu"]


def test_each_run_equals_the_same_run_alone():
    engine = LocalEngine("cpu")

    def work(ranks):
        value = torch.rand(2).tolist()
        torch.set_default_dtype(torch.float64)
        return value

    assert engine.run(work, num_ranks=1, seed=3) == engine.run(work, num_ranks=1, seed=3)


def test_threads_hold_for_the_run():
    before = torch.get_num_threads()
    engine = LocalEngine("cpu", num_threads=before + 1)
    assert engine.run(lambda ranks: torch.get_num_threads(), num_ranks=1, seed=0) == before + 1
    assert torch.get_num_threads() == before


def test_sigterm_ends_the_work_after_a_held_block():
    done = []

    def work(ranks):
        with ranks.hold():
            signal.raise_signal(signal.SIGTERM)
            done.append("held")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Terminated):
        LocalEngine("cpu").run(work, num_ranks=1, seed=0)
    assert done == ["held"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_devices_are_shared_out_in_turn(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    devices = LocalEngine("auto").devices(3)
    assert [str(device) for device in devices] == ["cuda:0", "cuda:1", "cuda:0"]


@pytest.mark.parametrize(
    ("options", "path"),
    [({"device": "tpu"}, "engine.device"), ({"num_threads": 0}, "engine.num_threads")],
)
def test_options_out_of_range_name_their_path(options, path):
    with pytest.raises(ConfigError) as caught:
        builder("engine", "local")(**options)
    assert caught.value.path == path


def test_cuda_without_a_device_is_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigError, match=r"engine\.device=auto"):
        LocalEngine("cuda").run(lambda ranks: None, num_ranks=1, seed=0)
