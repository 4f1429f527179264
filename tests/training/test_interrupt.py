"""Signals become exceptions, at a good moment."""

from __future__ import annotations

import signal
import threading

import pytest

from ppframe.training.interrupt import SignalGuard, Terminated, exit_code_of


def test_sigterm_and_ctrl_c_are_told_apart():
    with SignalGuard():
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt) as caught:
            signal.raise_signal(signal.SIGINT)
    assert caught.type is KeyboardInterrupt


def test_exit_codes_are_those_of_a_shell():
    errors = [None, ValueError(), KeyboardInterrupt(), Terminated()]
    assert [exit_code_of(error) for error in errors] == [0, 1, 130, 143]


def test_a_failure_handler_does_not_catch_a_signal():
    assert not issubclass(Terminated, Exception)


def test_handlers_come_back():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with SignalGuard():
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_held_signal_comes_after_the_block():
    done = []

    def work(guard: SignalGuard) -> None:
        with guard.hold():
            signal.raise_signal(signal.SIGTERM)
            done.append("update")
        done.append("unreachable")

    with SignalGuard() as guard, pytest.raises(Terminated):
        work(guard)
    assert done == ["update"]


def test_the_outermost_block_counts():
    done = []

    def work(guard: SignalGuard) -> None:
        with guard.hold():
            with guard.hold():
                signal.raise_signal(signal.SIGTERM)
            done.append("after the inner block")

    with SignalGuard() as guard, pytest.raises(Terminated):
        work(guard)
    assert done == ["after the inner block"]


def test_a_second_signal_breaks_through():
    done = []

    def work(guard: SignalGuard) -> None:
        with guard.hold():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            done.append("unreachable")

    with SignalGuard() as guard, pytest.raises(KeyboardInterrupt):
        work(guard)
    assert done == []


def test_an_error_in_a_held_block_is_not_replaced():
    def work(guard: SignalGuard) -> None:
        with guard.hold():
            signal.raise_signal(signal.SIGTERM)
            raise ValueError("disk")

    with SignalGuard() as guard, pytest.raises(ValueError, match="disk"):
        work(guard)


def test_in_another_thread_the_guard_does_nothing():
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work() -> None:
        with SignalGuard() as guard, guard.hold():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
