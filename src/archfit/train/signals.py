"""SIGTERM and Ctrl-C end a run after its current step, with a checkpoint."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    """Whether somebody asked the run to end."""

    signal_number: int | None = None


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Note the first signal instead of dying from it; a second one acts as ever."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():  # only it may set handlers
        yield request
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def note(number: int, _: FrameType | None) -> None:
        request.signal_number = number
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
