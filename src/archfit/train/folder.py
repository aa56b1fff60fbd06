"""The folder of a run: who holds it, and files that are there whole or not at all."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from archfit.spec import Evaluation, RunRecord, RunSpec, canonical_json, write_whole
from archfit.spec.run_folder import LOCK, LOG, RECORD, SPEC, discard_checkpoints, read_record

WEIGHTS = "model.safetensors"


class HeldElsewhereError(ValueError):
    """Another process trains this run."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make the folder and keep others out; the lock goes with the process that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "w", opener=_own_file) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise HeldElsewhereError(
                f"{folder} is being trained by another process; wait for it, or use another --out"
            ) from problem
        yield


def finished_record(folder: Path, spec: RunSpec) -> RunRecord | None:
    """The record of a run that is done, or None."""
    record = read_record(folder)
    if record is not None and record.spec.hash != spec.hash:
        raise ValueError(
            f"{folder / RECORD} is of another run, {record.spec.name}; delete it to train again"
        )
    return record


def write_spec(folder: Path, spec: RunSpec) -> None:
    """Say which run the folder holds."""
    write_whole(folder / SPEC, (canonical_json(spec) + "\n").encode())


def write_record(folder: Path, record: RunRecord) -> None:
    """Finish the run: the record makes it done, its checkpoints are then of no use."""
    write_whole(folder / RECORD, (canonical_json(record) + "\n").encode())
    discard_checkpoints(folder)


def write_log(folder: Path, evaluations: tuple[Evaluation, ...]) -> None:
    """The log as it was at a checkpoint: lines written after it will be written again."""
    lines = "".join(f"{canonical_json(evaluation)}\n" for evaluation in evaluations)
    write_whole(folder / LOG, lines.encode())


def append_to_log(folder: Path, evaluation: Evaluation) -> None:
    """One more line."""
    with open(folder / LOG, "a", encoding="utf-8") as log:
        log.write(f"{canonical_json(evaluation)}\n")


def _own_file(path: str, flags: int) -> int:
    """Open a file that is here, not where a link leads, as it is, and without waiting."""
    return os.open(path, flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
