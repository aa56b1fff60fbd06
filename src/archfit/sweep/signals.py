"""SIGTERM and Ctrl-C end a runner in order: what its workers are at is saved."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType


class SweepStopped(Exception):
    """A signal asked the runner to end."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("stopped; the same command goes on from there")
        self.signal_number = signal_number


@contextlib.contextmanager
def noted_signals() -> Iterator[Callable[[], None]]:
    """Inside, both signals are noted; calling what comes back raises `SweepStopped` if one came.

    They are not raised where they arrive: Ray cannot bear it, and lists would lose a cell. SIGTERM
    may come twice, since batch systems send it to a shell, which passes it on, and to all its
    children too. Ctrl-C a second time acts as ever.
    """
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)
        signal.signal(signal.SIGINT, before[signal.SIGINT])

    def raise_noted() -> None:
        if noted:
            raise SweepStopped(noted[0])

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, note)
    try:
        yield raise_noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
