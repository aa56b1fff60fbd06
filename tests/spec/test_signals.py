"""Signals that are noted once, and act as ever the second time."""

import os
import signal
import threading

import pytest

from archfit.spec.signals import StopRequest, stop_requests


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def send_twice(number: int) -> None:
    send(number)
    send(number)


def test_the_first_signal_is_noted_and_the_second_acts_as_ever() -> None:
    with stop_requests() as stop:
        assert stop.signal_number is None
        send(signal.SIGINT)
        assert stop.signal_number == signal.SIGINT
        send(signal.SIGTERM)  # another one, for the first time
        assert stop.signal_number == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_a_signal_that_may_come_twice_is_noted_twice() -> None:
    with stop_requests(repeatable=(signal.SIGTERM,)) as stop:
        for _ in range(3):
            send(signal.SIGTERM)
        assert stop.signal_number == signal.SIGTERM


def test_handlers_are_as_before_when_all_is_done() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(KeyboardInterrupt), stop_requests() as stop:
        send_twice(signal.SIGINT)
    assert stop.signal_number == signal.SIGINT
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_thread_that_may_set_no_handlers_gets_a_request_all_the_same() -> None:
    found: list[StopRequest] = []

    def work() -> None:
        with stop_requests() as stop:
            found.append(stop)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [StopRequest(signal_number=None)]
