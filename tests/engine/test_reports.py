"""Which of several errors was the first cause."""

from __future__ import annotations

import contextlib
import sys

import pytest

from ppframe.engine.reports import first_cause, mark_done, reporting
from ppframe.errors import (
    CheckpointError,
    ConfigError,
    EngineError,
    Fault,
    StageError,
    TransportError,
)

LOST = TransportError("the connection to rank 1 is closed", peer=1, key="0F1")


def leave(folder, rank, error):
    with pytest.raises(type(error)), reporting(folder, rank):
        raise error


def stage_error(rank, cause):
    with contextlib.suppress(type(cause)):
        raise cause
    return StageError(rank=rank, stage=rank, action=f"{rank}F2", cause=cause)


def test_an_error_comes_before_the_connections_it_closed(tmp_path):
    leave(tmp_path, 0, stage_error(0, LOST))
    leave(tmp_path, 1, stage_error(1, ValueError("no more")))
    leave(tmp_path, 2, LOST)
    error = first_cause(tmp_path, {0: 1, 1: 1, 2: 1})
    assert isinstance(error, StageError)
    assert (error.rank, error.stage, error.action) == (1, 1, "1F2")
    assert "ValueError: no more" in str(error)
    assert "no more" in error.cause.__notes__[0]
    assert __file__ in error.cause.where


def test_the_first_of_two_errors_is_raised(tmp_path):
    leave(tmp_path, 2, stage_error(2, ValueError("first")))
    leave(tmp_path, 0, stage_error(0, ValueError("second")))
    assert first_cause(tmp_path, {0: 1, 2: 1}).rank == 2


@pytest.mark.parametrize(("code", "text"), [(-9, "killed by SIGKILL"), (7, "exited with code 7")])
def test_a_rank_that_died_without_a_word(tmp_path, code, text):
    leave(tmp_path, 0, LOST)
    error = first_cause(tmp_path, {0: 1, 1: code})
    assert isinstance(error, EngineError)
    assert error.rank == 1
    assert text in str(error)


def test_a_rank_that_hangs_is_told_of_by_the_one_that_waited(tmp_path):
    waited = TransportError("within 5 s, but rank 1 did not answer", peer=1, key="0F1")
    leave(tmp_path, 0, stage_error(0, waited))
    error = first_cause(tmp_path, {0: 1})
    assert isinstance(error, StageError)
    assert "TransportError: within 5 s" in str(error)


def test_a_rank_that_ended_without_an_error_before_its_end(tmp_path):
    leave(tmp_path, 0, stage_error(0, LOST))
    error = first_cause(tmp_path, {0: 1})
    assert isinstance(error, EngineError)
    assert error.rank == 1
    assert "exited before it" in str(error)


def test_a_connection_that_closed_after_a_ranks_end_is_its_own_error(tmp_path):
    mark_done(tmp_path, 1)
    leave(tmp_path, 0, stage_error(0, LOST))
    assert isinstance(first_cause(tmp_path, {0: 1}), StageError)


def test_to_ask_for_the_end_of_the_process_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="asked to exit"), reporting(tmp_path, 0):
        sys.exit(0)
    assert "SystemExit: 0" in str(first_cause(tmp_path, {0: 1}))


def test_errors_of_the_configuration_and_of_checkpoints_stay_what_they_are(tmp_path):
    leave(tmp_path, 0, ConfigError([Fault("a.b", "must be 1."), Fault("c", "must be 2.")]))
    error = first_cause(tmp_path, {0: 1})
    assert isinstance(error, ConfigError)
    assert [fault.path for fault in error.faults] == ["a.b", "c"]
    (tmp_path / "other").mkdir()
    leave(tmp_path / "other", 1, CheckpointError("must be there, but isn't.", path="x.pt"))
    assert first_cause(tmp_path / "other", {1: 1}).path == "x.pt"


def test_another_error_names_its_rank(tmp_path):
    leave(tmp_path, 3, MemoryError("too much"))
    error = first_cause(tmp_path, {3: 1})
    assert str(error) == "rank 3 must run to its end, but raised MemoryError: too much"
