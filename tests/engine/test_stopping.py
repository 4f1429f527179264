"""A signal stops all ranks after the same step."""

from __future__ import annotations

import os
import signal

import pytest
import torch

from ppframe.engine.stopping import Note, StopSign, WatchfulPeers
from ppframe.training.interrupt import Terminated
from ppframe.transport import Alone


def squares() -> torch.Tensor:
    return torch.tensor(2.5, dtype=torch.float64)


def held(stop: WatchfulPeers) -> None:
    with stop.hold():
        assert stop.total(squares()) == 2.5


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_becomes_a_note_that_is_raised_at_the_end_of_a_hold(tmp_path, number, error):
    note = Note(tmp_path)
    stop = WatchfulPeers(Alone(), note.seen)
    with StopSign(note.write) as sign:
        os.kill(os.getpid(), number)
        assert sign.arrived is number
        with pytest.raises(error) as raised:
            held(stop)
        assert type(raised.value) is error
    with stop.hold():
        assert stop.total(squares()) == 2.5


def test_a_sum_outside_of_a_hold_raises_at_once(tmp_path):
    Note(tmp_path).write(signal.SIGTERM)
    peers = WatchfulPeers(Alone(), Note(tmp_path).seen)
    with pytest.raises(Terminated):
        peers.sum(torch.ones(3, dtype=torch.float64))
    assert torch.equal(peers.sum(torch.ones(2, 2)), torch.ones(2, 2))  # heeded once


def test_nothing_is_raised_without_a_signal(tmp_path):
    stop = WatchfulPeers(Alone(), Note(tmp_path).seen)
    with stop.hold(), stop.hold():
        assert stop.total(squares()) == 2.5


def test_an_inner_hold_waits_for_the_outer_one(tmp_path):
    Note(tmp_path).write(signal.SIGTERM)
    stop = WatchfulPeers(Alone(), Note(tmp_path).seen)
    reached = []

    def work():
        with stop.hold():
            held(stop)
            reached.append(True)

    with pytest.raises(Terminated):
        work()
    assert reached


def test_a_second_signal_comes_at_once_and_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)

    def twice():
        with StopSign():
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Terminated):
        twice()
    assert signal.getsignal(signal.SIGTERM) is before
