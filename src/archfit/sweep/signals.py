"""SIGTERM and Ctrl-C end a runner in order: what its workers are at is saved."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class SweepStopped(Exception):
    """A signal asked the runner to end."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("stopped; the same command goes on from there")
        self.signal_number = signal_number


@contextlib.contextmanager
def raised_signals() -> Iterator[None]:
    """Inside, the first of both signals is `SweepStopped`; Ctrl-C a second time acts as ever.

    A second SIGTERM is passed over: batch systems send it to a shell, which passes it on, and to
    all its children too.
    """

    def stop(number: int, _: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, before[signal.SIGINT])
        raise SweepStopped(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
