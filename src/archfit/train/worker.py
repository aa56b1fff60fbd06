"""A worker that trains the specs it reads, one after the other: `archfit train --spec -`.

Standard input gives one spec a line, the worker answers with one event a line:

    {"event": "ready", "device": …}                        once, when torch is loaded
    {"event": "started", "run": NAME, "step": 0}
    {"event": "progress", "run": NAME, "step": …, "steps": …, …}
    {"event": "finished", "run": NAME}                     the record is on disk
    {"event": "held", "run": NAME}                         another process trains it
    {"event": "refused", "run": NAME, "reason": …}         it cannot be trained; the next one may
    {"event": "out_of_memory", "run": NAME, "reason": …}   it may fit when less else is there

Who runs sweeps starts such a worker and keeps it, since torch alone takes seconds to load. When
standard input ends, nobody is left who would want more: a run under way is saved and left, and
one that was asked for just before is not begun.
"""

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from archfit.data.prepared import PreparedData
from archfit.spec import RunSpec, loads
from archfit.spec.signals import StopRequest
from archfit.train.context import Progress, Stopped, TrainSettings, Watchers, run_context
from archfit.train.hardware import choose_device, release_memory
from archfit.train.run import run_to_end, training_steps
from archfit.train.run_files import HeldElsewhereError

SECONDS_BETWEEN_EVENTS = 0.5
TOO_LARGE = "it needs more memory than there was; use a smaller network or batch"
Say = Callable[[dict[str, object]], None]


def serve(
    lines: TextIO, say: Say, datasets: Sequence[PreparedData], out: Path, settings: TrainSettings
) -> None:
    """Train what is asked for until nobody asks any more."""
    requests = SpecQueue()
    threading.Thread(target=requests.read, args=(lines,), daemon=True).start()
    say({"event": "ready", "device": choose_device(settings.device)})
    for spec in requests.specs():
        try:
            with run_context(data_for(spec, datasets), out, settings) as context:
                requests.stop_by(context.stop)
                run_to_end(training_steps(spec, context, EventWatcher(spec, say)))
        except HeldElsewhereError:
            say({"event": "held", "run": spec.name})
        except Stopped as stopped:
            raise SystemExit(128 + stopped.signal_number) from stopped
        except MemoryError:
            say({"event": "out_of_memory", "run": spec.name, "reason": TOO_LARGE})
        except (OSError, ValueError) as problem:
            reason = " ".join(str(problem).split())
            say({"event": "refused", "run": spec.name, "reason": reason})
        else:
            say({"event": "finished", "run": spec.name})
        release_memory()  # what this run took, its neighbours on the device may need


def data_for(spec: RunSpec, datasets: Sequence[PreparedData]) -> PreparedData:
    """The data set that the spec speaks of."""
    for data in datasets:
        if data.data_hash == spec.data_hash:
            return data
    there = ", ".join(data.data_hash[:16] for data in datasets)
    raise ValueError(
        f"run {spec.name} asks for data {spec.data_hash[:16]}, and --data has {there}; "
        "give the data that the spec was made for"
    )


class EventWatcher(Watchers):
    """Tells the one who asked where the run is, not too often."""

    def __init__(self, spec: RunSpec, say: Say) -> None:
        super().__init__()
        self.run, self.say, self.last = spec.name, say, 0.0

    def started(self, spec: RunSpec, step: int) -> None:
        """A run begins, or goes on after `step`."""
        self.say({"event": "started", "run": spec.name, "step": step})

    def progress(self, progress: Progress) -> None:
        """Some steps were made."""
        now = time.monotonic()
        if now - self.last >= SECONDS_BETWEEN_EVENTS:
            self.last = now
            event = {"event": "progress", "run": self.run} | asdict(progress)
            del event["flop_utilisation"]
            self.say(event)


class SpecQueue:
    """What is asked for, until whoever asks is gone; a run under way is then asked to stop.

    It is not sent a signal: one may have come already, and a second would kill it unsaved.
    """

    def __init__(self) -> None:
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.has_ended = threading.Event()
        self.stop = StopRequest()

    def read(self, lines: TextIO) -> None:
        """Take lines until there are no more."""
        for line in lines:
            self.lines.put(line)
        self.has_ended.set()
        self.stop.signal_number = signal.SIGTERM
        self.lines.put("")  # wake the one who waits for a line

    def specs(self) -> Iterator[RunSpec]:
        """What to train, one after the other, while somebody wants it."""
        while (line := self.lines.get()) and not self.has_ended.is_set():
            try:
                spec = loads(RunSpec, line)
            except ValueError as problem:
                raise ValueError(f"a line of standard input holds no spec: {problem}") from problem
            yield spec

    def stop_by(self, stop: StopRequest) -> None:
        """Let the run that begins be stopped by this."""
        self.stop = stop
        if self.has_ended.is_set():  # while it was about to begin
            stop.signal_number = signal.SIGTERM
