import threading

import pytest
import torch

from ppframe.transport.base import Direction, Message
from ppframe.transport.sends import Send, SendFailedError, SendsUnderWay

LIMIT_S = 10


class Work:
    """A send that is done when the test says so."""

    def __init__(self, *, error=None):
        self.done = threading.Event()
        self.error = error

    def wait(self, timeout):
        if not self.done.wait(min(timeout.total_seconds(), LIMIT_S)):
            raise RuntimeError("Timed out waiting")
        if self.error is not None:
            raise RuntimeError(self.error)


def send(number, work):
    return Send(Message(Direction.FORWARD, 0, 1, number, 0, 1), work, torch.ones(1))


def wait_until(condition):
    pause = threading.Event()
    for _ in range(LIMIT_S * 1000):
        if condition():
            return
        pause.wait(0.001)
    pytest.fail("the condition must come true, but does not")


@pytest.fixture
def sends():
    under_way = SendsUnderWay()
    yield under_way
    under_way.drop()


@pytest.mark.parametrize("count", [0, 1, 4, 11])
def test_finish_waits_for_all(sends, count):
    works = [Work() for _ in range(count)]
    for number, work in enumerate(works):
        sends.keep(send(number, work))
    assert sends.num_kept == count
    threading.Timer(0.02, lambda: [work.done.set() for work in works]).start()
    sends.finish(LIMIT_S)
    assert sends.num_kept == 0
    assert all(work.done.is_set() for work in works)


def test_what_is_done_is_let_go_during_the_step(sends):
    for number in range(40):
        work = Work()
        work.done.set()
        sends.keep(send(number, work))
    wait_until(lambda: sends.num_kept == 0)


def test_the_oldest_that_is_not_through_is_named(sends):
    works = [Work() for _ in range(6)]
    for number, work in enumerate(works):
        sends.keep(send(number, work))
    works[0].done.set()
    wait_until(lambda: sends.num_kept == 5)
    with pytest.raises(SendFailedError, match=r"timed out after 0\.05 s") as error:
        sends.finish(0.05)
    assert error.value.message.microbatch == 1
    for work in works:
        work.done.set()


@pytest.mark.parametrize("count", [1, 9])
def test_a_failed_send_is_told(sends, count):
    for number in range(count):
        work = Work(error="Connection closed by peer" if number == 0 else None)
        work.done.set()
        sends.keep(send(number, work))
        if number == 3:
            wait_until(lambda: sends.num_kept == 0)
        if number == 6:
            break
    with pytest.raises(SendFailedError, match="closed by peer") as error:
        sends.finish(LIMIT_S)
    assert error.value.message.microbatch == 0


def test_the_thread_ends_with_its_owner():
    under_way = SendsUnderWay()
    for number in range(4):
        work = Work()
        work.done.set()
        under_way.keep(send(number, work))
    thread = under_way._thread
    assert thread.is_alive()
    del under_way
    thread.join(LIMIT_S)
    assert not thread.is_alive()
