"""A run begins in a given state and takes its changes away."""

from __future__ import annotations

import logging
import os
import random
import sys
import warnings

import numpy
import pytest
import torch

from ppframe.engine.isolation import isolated


def draws() -> tuple[float, float, float]:
    return random.random(), float(numpy.random.rand()), float(torch.rand(()))


def test_every_run_begins_from_its_seed():
    random.seed(5)
    with isolated(seed=1):
        first = draws()
    draws()
    with isolated(seed=1):
        assert draws() == first
    with isolated(seed=2):
        assert draws() != first


def test_the_callers_generators_go_on_as_if_nothing_had_been():
    for seed in (random.seed, numpy.random.seed, torch.manual_seed):
        seed(7)
    expected = draws()
    for seed in (random.seed, numpy.random.seed, torch.manual_seed):
        seed(7)
    with isolated(seed=1):
        draws()
    assert draws() == expected


def make_a_mess(folder) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("medium")
    logging.getLogger().addHandler(logging.FileHandler(folder / "log"))
    logging.getLogger().setLevel(1)
    sys.path.insert(0, str(folder))
    sys.excepthook = print
    os.environ["PPFRAME_TEST_MESS"] = "1"
    os.environ["HOME"] = "nowhere"
    os.chdir(folder)
    warnings.simplefilter("ignore")


def state() -> tuple[object, ...]:
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        list(logging.getLogger().handlers),
        logging.getLogger().level,
        list(sys.path),
        sys.excepthook,
        dict(os.environ),
        os.getcwd(),
        list(warnings.filters),
    )


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_what_a_run_changes_is_put_back_whatever_ends_it(tmp_path, error):
    before = state()
    try:
        with isolated(seed=0):
            make_a_mess(tmp_path)
            if error is not None:
                raise error
    except (ValueError, KeyboardInterrupt):
        pass
    assert state() == before


def test_threads_are_set_for_the_run():
    before = torch.get_num_threads()
    with isolated(seed=0, num_threads=before + 2):
        assert torch.get_num_threads() == before + 2
    assert torch.get_num_threads() == before
