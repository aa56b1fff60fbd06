"""A process that trains the cells it is given: `python -m archfit train --spec -`.

What it says is described in archfit/train/together.py. When its standard input is closed, also by
the death of the one who holds the other end, it saves the run under way and ends.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from archfit.spec import RunSpec, canonical_json
from archfit.sweep.runner import RunnerOptions

SECONDS_TO_SAVE = 60.0  # for a checkpoint, when a worker is told to end
LONGEST_REASON = 300  # characters of what a dying worker said


class Worker:
    """One such process, and the cells it is at."""

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
        self.cells: dict[str, RunSpec] = {}  # by the name of the run
        self.is_ready = False  # whether it has loaded what it needs
        self.unfinished_line = b""

    def fileno(self) -> int:
        """What to wait for."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def give(self, cell: RunSpec) -> None:
        """Let it train the cell; that it has died meanwhile shows when it is read."""
        assert self.process.stdin is not None
        self.cells[cell.name] = cell
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(canonical_json(cell).encode() + b"\n")
            self.process.stdin.flush()

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

    def is_dead(self) -> bool:
        """Whether it has ended; a child of its own may keep what it speaks through open."""
        return self.process.poll() is not None

    def dismiss(self) -> None:
        """Tell it that nothing more will come."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def end(self) -> None:
        """Wait until it has saved what it was at, and is gone."""
        self.dismiss()
        try:
            self.process.wait(timeout=SECONDS_TO_SAVE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
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
