"""What the tests of sweeps share: tiny sweeps on disk, the program that runs them, its oracle."""

import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from archfit.data.prepared import PreparedData
from archfit.spec import RunRecord, RunSpec
from archfit.spec.files import read_records
from archfit.sweep.folder import sweep_json
from archfit.sweep.runner import RunnerOptions
from archfit.sweep.sweep import Corpus, Sweep
from tests_training import record_of, tiny_spec

PATIENCE = 120.0  # seconds until something must have happened, on a machine that others use too


def tiny_specs(data: PreparedData, count: int, **changes: object) -> tuple[RunSpec, ...]:
    """Runs of milliseconds that differ in their seed."""
    return tuple(replace(tiny_spec(data, **changes), seed=seed) for seed in range(count))


def tiny_sweep(data: PreparedData, specs: tuple[RunSpec, ...], name: str = "tiny") -> Sweep:
    corpus = Corpus(
        label="bytes",
        kind="bytes",
        vocab=data.vocab,
        hash=data.data_hash,
        folder=str(data.folder.resolve()),
    )
    return Sweep(name=name, scale="smoke", question="Does it run?", data=(corpus,), specs=specs)


def write_sweep(data: PreparedData, specs: tuple[RunSpec, ...], folder: Path) -> Path:
    """A file that `archfit sweep` takes."""
    path = folder / "tiny.json"
    path.write_text(sweep_json(tiny_sweep(data, specs)))
    return path


def runner_options(data: PreparedData, out: Path, checkpoint_seconds: float = 1e9) -> RunnerOptions:
    return RunnerOptions(
        out=out,
        data_folders=(data.folder,),
        device="cpu",
        threads=1,
        checkpoint_seconds=checkpoint_seconds,
    )


def sweep_command(file: Path, out: Path, *arguments: str) -> list[str]:
    """The command line of a runner, which is a process of its own."""
    start = [sys.executable, "-m", "archfit", "sweep", str(file), "--out", str(out)]
    workers = () if "--ray" in arguments else ("--workers", "1")  # Ray counts its own
    return [*start, "--device", "cpu", *workers, *arguments]


def undisturbed(specs: tuple[RunSpec, ...], data: PreparedData, out: Path) -> list[RunRecord]:
    """The oracle: each run by itself, in this process, without any runner."""
    return [record_of(spec, data, out) for spec in specs]


def assert_same_results(out: Path, expected: list[RunRecord]) -> None:
    """The folder holds these records and no other; timing and machine are free."""
    found = {record.spec.name: record for record in read_records(out)}
    assert found.keys() == {record.spec.name for record in expected}
    for record in expected:
        assert found[record.spec.name].same_result(record)


def wait_until(happened: Callable[[], object], what: str) -> None:
    """Look again and again; nothing here depends on how fast the machine is."""
    give_up = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < give_up, f"{what}: not within {PATIENCE:.0f} s"
        time.sleep(0.01)


def started(
    command: list[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """A process whose words are kept; itself and its children can be found by `descendants`."""
    return subprocess.Popen(
        command,
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def document(process: subprocess.Popen[str], status: int = 0) -> dict[str, object]:
    """The JSON that it printed when it had ended with that status."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, err
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def descendants(process: int) -> list[int]:
    """Its children and theirs, as the kernel knows them."""
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it is gone
        return []
    return [found for child in listed for found in (int(child), *descendants(int(child)))]


def is_alive(process: int) -> bool:
    """Whether it runs; a zombie whom nobody waits for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_all(processes: list[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def crashing(run: str, folder: Path, last_deed: str = "") -> dict[str, str]:
    """An environment in which the worker that begins this run dies of a segmentation fault.

    The package knows nothing of it: Python reads `sitecustomize` when it starts, and the kernel
    sends the signal when a worker opens the lock of the run.
    """
    hook = f"""
import os, signal, subprocess, sys

def audit(event, arguments):
    if event == "open" and str(arguments[0]).endswith({f"{run}/.lock"!r}):
        {last_deed or "pass"}
        os.kill(os.getpid(), signal.SIGSEGV)

if "train" in sys.orig_argv:
    sys.addaudithook(audit)
"""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(hook)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


class RecordsWritten:
    """Counts by the kernel's own notices how often each run's record was put in place."""

    MOVED_TO, NOT_BLOCKING = 0x80, os.O_NONBLOCK

    def __init__(self, runs: list[Path]) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.handle = self.libc.inotify_init1(self.NOT_BLOCKING)
        self.runs = {}
        for run in runs:
            run.mkdir(parents=True, exist_ok=True)
            watch = self.libc.inotify_add_watch(self.handle, os.fsencode(run), self.MOVED_TO)
            assert watch >= 0
            self.runs[watch] = run.name

    def counted(self) -> Counter[str]:
        """By name of the run; closes the books."""
        notices = b""
        while True:
            try:
                notices += os.read(self.handle, 1 << 20)
            except BlockingIOError:
                break
        os.close(self.handle)
        counts: Counter[str] = Counter()
        while notices:
            watch, _, _, length = struct.unpack_from("iIII", notices)
            name = notices[16 : 16 + length].rstrip(b"\0")
            notices = notices[16 + length :]
            assert watch >= 0, "the kernel lost notices"
            counts[self.runs[watch]] += name == b"record.json"
        return counts
