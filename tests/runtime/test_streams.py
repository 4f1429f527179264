import pytest
import torch

from ppframe.errors import InternalError
from ppframe.runtime.buffers import Buffer
from ppframe.runtime.streams import Borrow, RankStreams


class NotedStream:
    """A stream that writes down what it is told."""

    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def wait_for(self, other):
        self.notes.append(f"{self.name} waits for {other.name}")

    def uses(self, tensor):
        self.notes.append(f"{self.name} uses {tensor.item():.0f}")


def borrow(notes, ledger, value):
    return Borrow(value, NotedStream("owner", notes), NotedStream("borrower", notes), ledger)


def test_a_borrower_waits_first_and_marks_the_memory_when_it_is_through():
    notes, ledger = [], set()
    with borrow(notes, ledger, (torch.tensor(1.0), [torch.tensor(2.0), None])) as value:
        assert value[0].item() == 1.0
        assert notes == ["borrower waits for owner"]
        assert len(ledger) == 1
    assert notes[1:] == ["borrower uses 1", "borrower uses 2"]
    assert not ledger


def test_dropping_twice_is_an_error():
    lent = borrow([], set(), torch.tensor(1.0))
    lent.drop()
    with pytest.raises(InternalError, match="dropped twice"):
        lent.drop()


def test_a_borrow_left_open_is_found_at_the_end_of_the_step():
    streams = RankStreams([torch.device("cpu")])
    borrow([], streams.open_borrows, torch.tensor(1.0))
    with pytest.raises(InternalError, match="1 are open"):
        streams.end_step()
    streams.end_step()


def test_a_move_detaches_and_keeps_who_wants_gradients():
    streams = RankStreams([torch.device("cpu")] * 2)
    source = torch.ones(2, requires_grad=True)
    value = {"a": source * 2, "ids": torch.zeros(1, dtype=torch.int64)}
    moved = streams.move(0, 1, value)
    assert moved["a"].grad_fn is None
    assert moved["a"].requires_grad
    assert not moved["ids"].requires_grad
    streams.end_step()


def test_a_buffer_with_something_left_names_it():
    buffer = Buffer("outputs of stage 3")
    buffer.require_empty()
    buffer[7] = "x"
    with pytest.raises(InternalError, match=r"outputs of stage 3 .*\[7\]"):
        buffer.require_empty()
