"""Runs of one process, one after another or side by side; and a worker that trains what it reads.

A small network leaves most of a GPU idle. Runs that take turns on streams of their own fill it, and
each still executes exactly the kernels that it would execute alone. On a CPU one run at a time
already uses every core.

To a worker (`archfit train --spec -`) standard input gives one spec a line, and it answers with one
event a line:

    {"event": "ready", "device": …}                        once, when torch is loaded
    {"event": "started", "run": NAME, "step": 0}
    {"event": "progress", "run": NAME, "step": …, "steps": …, …}
    {"event": "finished", "run": NAME}                     the record is on disk
    {"event": "held", "run": NAME}                         another process trains it
    {"event": "refused", "run": NAME, "reason": …}         it cannot be trained; the next one may
    {"event": "out_of_memory", "run": NAME, "reason": …}   it may fit when less else is there

Who runs sweeps starts such a worker and keeps it, since torch alone takes seconds to load, and
gives it as many runs as fill its device. When standard input ends, nobody is left who would want
more: runs under way are saved and left, and one that was asked for just before is not begun.
"""

import queue
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

import torch

from archfit.data.prepared import PreparedData
from archfit.spec import RunRecord, RunSpec, loads
from archfit.spec.errors import refusal
from archfit.spec.gpu_cost import gpu_share
from archfit.spec.record import Progress, Watchers
from archfit.spec.signals import Stopped, StopRequest, stop_requests
from archfit.train import hardware
from archfit.train.hardware import RunContext, TrainSettings, choose_device, joined_process_group
from archfit.train.run import Pause, TrainingSteps, check_data, training_steps
from archfit.train.run_files import HeldElsewhereError

SECONDS_TO_WAIT = 50e-6  # when every run waits for the GPU
SHARE_OF_MEMORY = 0.6  # that runs which have ended may keep of a GPU
SECONDS_BETWEEN_EVENTS = 0.5
SECONDS_BETWEEN_LOOKS = 0.2  # at signals, while nothing is asked for
TOO_LARGE = "it needs more memory than there was; use a smaller network or batch"
Say = Callable[[dict[str, object]], None]


class RunInTurn:
    """A run that takes its steps in turns with others, on a GPU on a stream of its own."""

    def __init__(self, spec: RunSpec, steps: TrainingSteps, device: torch.device) -> None:
        self.spec, self.steps = spec, steps
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.may_go_on: Pause = None
        self.record: RunRecord | None = None
        self.problem: Exception | None = None

    def advance(self) -> bool:
        """Go on to the next pause, and say whether that was the end: the record is there, or what
        stopped the run is kept in `problem`."""
        if self.may_go_on is not None and not self.may_go_on():
            return False
        with torch.cuda.stream(self.stream):  # None: the stream stays what it is
            try:
                self.may_go_on = next(self.steps)
                return False
            except StopIteration as finished:
                self.record = finished.value
            except (Stopped, MemoryError, OSError, ValueError) as problem:
                self.problem = problem
        return True


class SideBySide:
    """Runs that take turns; who gives them sees to it that they fit."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.runs = device, list[RunInTurn]()

    def add(self, spec: RunSpec, steps: TrainingSteps) -> None:
        """Let a run begin when its turn comes."""
        self.runs.append(RunInTurn(spec, steps, self.device))

    def advance(self) -> list[RunInTurn]:
        """One turn of each; those that have ended leave."""
        started = time.monotonic()
        ended = [run for run in self.runs if run.advance()]
        self.runs = [run for run in self.runs if run not in ended]
        if ended:
            self._free_memory()
        elif time.monotonic() - started < SECONDS_TO_WAIT:
            time.sleep(SECONDS_TO_WAIT)
        return ended

    def _free_memory(self) -> None:
        """Give back what ended runs took; waits for the GPU, so only where there is need."""
        if self.runs and self.device.type == "cuda":
            total = torch.cuda.get_device_properties(self.device).total_memory
            if torch.cuda.memory_reserved(self.device) < SHARE_OF_MEMORY * total:
                return
        hardware.release_memory()


def train(
    spec: RunSpec, data: PreparedData, out: Path, settings: TrainSettings, watch: Watchers
) -> RunRecord:
    """Train one run in the folder out/NAME and return its record; at once if it is there."""
    (record,) = train_together([spec], data, out, settings, [watch])
    return record


def train_together(
    specs: Sequence[RunSpec],
    data: PreparedData,
    out: Path,
    settings: TrainSettings,
    watchers: Sequence[Watchers],
) -> list[RunRecord]:
    """The records of all specs, in their order; `watchers` has one for each.

    As many are trained at once as fill the GPU; after one that did not finish none begins.
    """
    for spec in specs:
        check_data(spec, data)
    waiting, records = [*zip(specs, watchers, strict=True)], dict[RunSpec, RunRecord]()
    problem: Exception | None = None
    with joined_process_group(choose_device(settings.device)) as group, stop_requests() as stop:
        context = RunContext(data=data, out=out, settings=settings, group=group, stop=stop)
        runs = SideBySide(group.device)
        while waiting or runs.runs:
            while waiting and _fits(waiting[0][0], runs.runs, context):
                spec, watch = waiting.pop(0)
                runs.add(spec, training_steps(spec, context, watch))
            for run in runs.advance():
                if run.record is not None:
                    records[run.spec] = run.record
                else:
                    problem, waiting = problem or run.problem, []
    if problem is not None:
        raise problem
    return [records[spec] for spec in specs]


def _fits(spec: RunSpec, beside: Sequence[RunInTurn], context: RunContext) -> bool:
    if not beside:
        return True
    if context.group.device.type != "cuda" or context.group.world > 1:
        return False  # clocks of a group would disagree
    return sum(gpu_share(run.spec) for run in beside) + gpu_share(spec) <= 1


def serve(
    lines: TextIO, say: Say, datasets: Sequence[PreparedData], out: Path, settings: TrainSettings
) -> None:
    """Train what is asked for until nobody asks any more; several runs if several are asked for."""
    device = choose_device(settings.device)
    with joined_process_group(device) as group, stop_requests() as stop:
        requests = SpecQueue(stop)  # reads meanwhile: who left before the first run wants none
        threading.Thread(target=requests.read, args=(lines,), daemon=True).start()
        say({"event": "ready", "device": device})
        runs = SideBySide(group.device)

        def steps_of(spec: RunSpec) -> TrainingSteps:
            if not out.is_dir():  # a run would make it again, and nobody would look there
                raise ValueError(f"{out} was deleted, so {spec.name} is not trained")
            data = data_for(spec, datasets)
            context = RunContext(data=data, out=out, settings=settings, group=group, stop=stop)
            return (yield from training_steps(spec, context, EventWatcher(spec, say)))

        stopped: Stopped | None = None
        while (spec := requests.next(runs)) is not None or runs.runs:
            if spec is not None:
                runs.add(spec, steps_of(spec))
                continue  # there may be more
            for run in runs.advance():
                if isinstance(run.problem, Stopped):
                    stopped = run.problem
                else:
                    say(_outcome(run))
    if stopped is not None:  # those under way are saved
        raise SystemExit(128 + stopped.signal_number) from stopped


def _outcome(run: RunInTurn) -> dict[str, object]:
    """The event of a run that has ended."""
    outcome: dict[str, object] = {"event": "finished", "run": run.spec.name}
    match run.problem:
        case None:
            return outcome
        case HeldElsewhereError():
            return outcome | {"event": "held"}
        case MemoryError():
            return outcome | {"event": "out_of_memory", "reason": TOO_LARGE}
        case problem:
            return outcome | {"event": "refused", "reason": " ".join(str(problem).split())}


def data_for(spec: RunSpec, datasets: Sequence[PreparedData]) -> PreparedData:
    """The data set that the spec speaks of."""
    for data in datasets:
        if data.data_hash == spec.data_hash:
            return data
    there = ", ".join(data.data_hash[:16] for data in datasets)
    raise refusal("run-data", name=spec.name, wanted=spec.data_hash[:16], there=there)


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
    """What is asked for, until whoever asks is gone; runs under way are then asked to stop.

    The process is not sent a signal: one may have come already, and a second would kill it unsaved.
    """

    def __init__(self, stop: StopRequest) -> None:
        self.lines, self.stop = queue.SimpleQueue[str](), stop

    def read(self, lines: TextIO) -> None:
        """Take lines until there are no more."""
        for line in lines:
            self.lines.put(line)
        self.stop.signal_number = signal.SIGTERM

    def next(self, beside: SideBySide) -> RunSpec | None:
        """What to train, too; waits for it if nothing is trained. None where there is nothing.

        On a CPU a run has all of it, and what is asked for waits.
        """
        waits, line = not beside.runs, ""
        if beside.runs and beside.device.type != "cuda":
            return None
        while not line and self.stop.signal_number is None:
            try:
                line = self.lines.get(block=waits, timeout=SECONDS_BETWEEN_LOOKS)
            except queue.Empty:
                if not waits:
                    break
        if not line or self.stop.signal_number is not None:
            return None
        try:
            return loads(RunSpec, line)
        except ValueError as problem:
            raise ValueError(f"a line of standard input holds no spec: {problem}") from problem
