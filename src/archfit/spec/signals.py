"""SIGTERM and Ctrl-C as a request: what is under way is saved before a process ends."""

import contextlib
import signal
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    """Whether somebody asked to end, and by which signal."""

    signal_number: int | None = None


class Stopped(Exception):
    """A signal asked a run to end, whose checkpoint is written, or the runner of a sweep."""

    def __init__(self, step: int | None, signal_number: int) -> None:
        where = "" if step is None else f" at step {step}"
        super().__init__(f"stopped{where}; run the same command again to resume")
        self.signal_number = signal_number


@contextlib.contextmanager
def stop_requests(*, repeatable: Collection[int] = ()) -> Iterator[StopRequest]:
    """Note a signal instead of dying from it; the same one a second time acts as ever.

    Those that are `repeatable` are only noted, however often they come: batch systems send SIGTERM
    to a shell, which passes it on, and to all its children too.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():  # only it may set handlers
        yield request
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def note(number: int, _: FrameType | None) -> None:
        request.signal_number = number
        if number not in repeatable:
            signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
