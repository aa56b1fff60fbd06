"""What all runners share: the list of cells to train, options of their workers, how they end.

Nothing is remembered between runners but what lies in the folders of the runs: a record says
that a cell is done, a lock that somebody who lives is at it. A runner that is killed takes nothing
along.

A worker is a process that trains the cells it is given: `python -m archfit train --spec -`. What it
says is described in archfit/train/together.py. When its standard input is closed, also by the death
of the one who holds the other end, it saves the run under way and ends.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from archfit.spec import RunSpec, canonical_json
from archfit.spec.errors import check_at_least, check_choice, check_real, refuse_if
from archfit.spec.files import SWEEP, discard_checkpoints, is_done, is_held
from archfit.spec.signals import Stopped, StopRequest

DEVICES = ("auto", "cuda", "mps", "cpu")
TRIES = 3  # of a cell whose process dies
SECONDS_BETWEEN_LOOKS = 0.5  # at cells that others hold
SECONDS_TO_SAVE = 60.0  # for a checkpoint, when a worker is told to end
LONGEST_REASON = 300  # characters of what a dying worker said


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnerOptions:
    """What the workers of a sweep share."""

    out: Path
    data_folders: tuple[Path, ...] = ()
    device: str
    threads: int  # of each; results depend on it to the last bit, so it does not vary in a sweep
    checkpoint_seconds: float

    def __post_init__(self) -> None:
        check_choice(DEVICES, device=self.device)
        check_at_least(1, threads=self.threads)
        check_real(0, 1e9, checkpoint_seconds=self.checkpoint_seconds)


class SweepWatcher:
    """What is told how a sweep goes; this one shows nothing, and the command line's show it."""

    def begins(self, cells: "CellQueue") -> None:
        """The list is there; it changes while the runner works."""

    def progress(self, spec: RunSpec, event: dict[str, object]) -> None:
        """How far a cell is: step, and later training_nats_per_token and tokens_per_second."""

    def ended(self, spec: RunSpec, how: str) -> None:
        """A cell is no longer trained: finished, or the reason."""

    def passes(self) -> None:
        """Time passes; comes at least once a second."""


class CellQueue:
    """The cells of a sweep as one runner sees them."""

    def __init__(self, specs: Iterable[RunSpec], out: Path) -> None:
        self.folders = {spec: out / spec.name for spec in specs}  # a name is a hash: made once
        self.pending = deque(self.folders)
        self.total = len(self.pending)
        self.elsewhere: list[RunSpec] = []
        self.done: list[RunSpec] = []  # by this runner
        self.skipped: list[RunSpec] = []  # done before, or by somebody else meanwhile
        self.failed: dict[RunSpec, str] = {}
        self.crashes: Counter[RunSpec] = Counter()
        self.alone: set[RunSpec] = set()  # ran out of memory beside others
        self.last_look = 0.0

    def next(self, fits: Callable[[RunSpec], bool]) -> RunSpec | None:
        """A cell to train now, taken from the list; None if there is none that fits.

        Those that do not fit stay where they are and are not looked up: lists are long.
        """
        if self.elsewhere and time.monotonic() - self.last_look >= SECONDS_BETWEEN_LOOKS:
            self.last_look = time.monotonic()  # cells that nobody holds any more are taken back
            held = {spec: is_held(self.folders[spec]) for spec in self.elsewhere}
            self.elsewhere = [spec for spec, is_so in held.items() if is_so]
            self.pending.extend(spec for spec, is_so in held.items() if not is_so)
        waiting: list[RunSpec] = []
        found = None
        while self.pending and found is None:
            spec = self.pending.popleft()
            if not fits(spec):
                waiting.append(spec)
            elif is_done(self.folders[spec]):
                discard_checkpoints(self.folders[spec])
                self.skipped.append(spec)
            elif is_held(self.folders[spec]):
                self.elsewhere.append(spec)
            else:
                found = spec
        self.pending.extendleft(reversed(waiting))
        return found

    @property
    def all_done(self) -> bool:
        """Whether every record is there, before anything is looked at."""
        return all(is_done(folder) for folder in self.folders.values())

    @property
    def left(self) -> int:
        """How many are neither done nor given up, wherever they are."""
        return self.total - len(self.done) - len(self.skipped) - len(self.failed)

    def note(self, spec: RunSpec, event: dict[str, object], watch: SweepWatcher) -> None:
        """What became of a cell, as its worker or the death of it says."""
        reason = str(event.get("reason", ""))
        watch.ended(spec, reason or str(event["event"]))
        match event["event"]:
            case "finished":
                self.done.append(spec)
            case "held":  # somebody else was quicker
                self.elsewhere.append(spec)
            case "died" if self.crashes[spec] < TRIES - 1:  # again, after the others
                self.crashes[spec] += 1
                self.pending.append(spec)
            case "died":
                self.failed[spec] = f"{reason} ({TRIES} times)"
            case "out_of_memory" if spec not in self.alone:  # once more, without neighbours
                self.alone.add(spec)
                self.pending.append(spec)
            case _:  # it cannot be trained, and would not be the next time
                self.failed[spec] = reason


def end_if_asked(request: StopRequest, out: Path) -> None:
    """Refuse to go on after a signal, or where the sweep's folder was deleted or replaced.

    Signals are not raised where they arrive: Ray cannot bear it, and lists would lose a cell.
    """
    if request.signal_number is not None:
        raise Stopped(None, request.signal_number)
    refuse_if(not (out / SWEEP).is_file(), "sweep-deleted", out=out)


# ---- workers


class Worker:
    """A process that trains, and the cells it is at."""

    def __init__(self, options: RunnerOptions, visible_gpu: str | None = None) -> None:
        data = [word for folder in options.data_folders for word in ("--data", str(folder))]
        threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        gpu = {} if visible_gpu is None else {"CUDA_VISIBLE_DEVICES": visible_gpu}
        self.words = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "archfit", "train", "--spec", "-", "--no-keep-weights"),
                *("--out", str(options.out), "--device", options.device, *data),
                *("--checkpoint-seconds", str(options.checkpoint_seconds)),
            ],
            env=os.environ | threads | gpu,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.words,
            start_new_session=True,  # Ctrl-C is for the runner, which then ends its workers
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.orders, self.answers = self.process.stdin, self.process.stdout
        self.cells: dict[str, RunSpec] = {}  # by the name of the run
        self.is_ready = False  # whether it has loaded what it needs
        self.unfinished_line = b""

    def fileno(self) -> int:
        """What to wait for."""
        return self.answers.fileno()

    def give(self, cell: RunSpec) -> None:
        """Let it train the cell; that it has died meanwhile shows when it is read."""
        self.cells[cell.name] = cell
        with contextlib.suppress(BrokenPipeError):
            self.orders.write(canonical_json(cell).encode() + b"\n")
            self.orders.flush()

    def events(self) -> Iterator[dict[str, object]]:
        """What it said since; reads once, and waits if there is nothing. `died` comes last."""
        said = os.read(self.fileno(), 1 << 16)
        *lines, self.unfinished_line = (self.unfinished_line + said).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):  # a library that prints
                event = json.loads(line)
                if isinstance(event, dict) and "event" in event:
                    self.is_ready = True
                    yield event
        if not said:
            yield self.death()

    def death(self) -> dict[str, object]:
        """The event of a worker that has ended: how, and the last line that it wrote."""
        status = self.process.wait()
        how = f"killed by signal {-status}" if status < 0 else f"ended with status {status}"
        self.words.seek(max(0, self.words.seek(0, os.SEEK_END) - (1 << 16)))
        lines = self.words.read().decode(errors="replace").strip().splitlines()
        reason = f"{how}: {lines[-1][-LONGEST_REASON:]}" if lines else how
        return {"event": "died", "reason": reason}

    def dismiss(self) -> None:
        """Tell it that nothing more will come."""
        with contextlib.suppress(BrokenPipeError):
            self.orders.close()

    def end(self) -> None:
        """Wait until it has saved what it was at, and is gone."""
        self.dismiss()
        try:
            self.process.wait(timeout=SECONDS_TO_SAVE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.answers.close()
        self.words.close()


def train_cell(cell: RunSpec, options: RunnerOptions) -> dict[str, object]:
    """How the training of one cell ended, by a worker of its own."""
    worker = Worker(options)
    try:
        worker.give(cell)
        while True:
            for event in worker.events():
                if event["event"] not in ("ready", "started", "progress"):
                    return event
    finally:
        worker.end()


def absolute_import_path() -> str:
    """PYTHONPATH as it must be said elsewhere; empty where archfit is installed."""
    parts = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(str(Path(part).absolute()) for part in parts if part)
