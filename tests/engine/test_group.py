"""What engines of several processes refuse before any of them starts."""

import pytest

from ppframe.engine import TorchrunEngine
from ppframe.engine.local import LocalEngine
from ppframe.errors import ConfigError
from ppframe.registry import builder


@pytest.mark.parametrize("name", ["processes", "torchrun"])
@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_time_limit_must_be_above_0(name, limit):
    with pytest.raises(ConfigError, match="above 0") as error:
        builder("engine", name)(device="cpu", timeout_s=limit)
    assert error.value.path == "engine.timeout_s"


def test_another_number_of_processes_is_told_with_both_ways_out(monkeypatch):
    for key, value in {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 3, "MASTER_PORT": 1}.items():
        monkeypatch.setenv(key, str(value))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with pytest.raises(ConfigError, match="ranks=3, or start 2 processes") as error:
        TorchrunEngine(LocalEngine("cpu"), 5.0).run(lambda ranks: None, num_ranks=2, seed=0)
    assert error.value.path == "pipeline.ranks"


def test_torchrun_without_its_variables_is_refused(monkeypatch):
    for key in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(key, raising=False)
    with pytest.raises(ConfigError, match="torchrun --nproc-per-node 2"):
        TorchrunEngine(LocalEngine("cpu"), 5.0).run(lambda ranks: None, num_ranks=2, seed=0)
