"""The files of a run's folder, and what can be read of them without training."""

import fcntl
import os
import shutil
from pathlib import Path

from archfit.spec.files import load_file
from archfit.spec.record import RunRecord

RECORD, SPEC, LOG, LOCK = "record.json", "spec.json", "log.jsonl", ".lock"
CHECKPOINTS = "checkpoint"
LARGEST_JSON = 1 << 28  # bytes; a record of a million evaluations has fewer


def read_record(folder: Path) -> RunRecord | None:
    """The record of the run in `folder`, or None while it is not done."""
    path = folder / RECORD
    try:
        return load_file(RunRecord, path, most_bytes=LARGEST_JSON)
    except FileNotFoundError:
        return None
    except ValueError as problem:
        raise ValueError(f"{path} is damaged ({problem}); delete it to train again") from problem


def read_records(out: Path) -> tuple[RunRecord, ...]:
    """The records of all runs that are done in a folder of runs, in the order of their names.

    A run's folder is named by its spec, so a record that was put elsewhere is noticed.
    """
    found = []
    for path in sorted(out.glob(f"*/{RECORD}")):
        record = read_record(path.parent)
        if record is None:  # removed since it was listed
            continue
        if record.spec.name != path.parent.name:
            raise ValueError(
                f"{path} is of another run, {record.spec.name}; move it to the folder of that name"
            )
        found.append(record)
    return tuple(found)


def is_done(folder: Path) -> bool:
    """Whether the run in `folder` has its record."""
    return os.path.isfile(folder / RECORD)  # raises nothing, whatever lies there


def discard_checkpoints(folder: Path) -> None:
    """Remove those of a run that is done; who wrote its record may have been killed before."""
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def is_held(folder: Path) -> bool:
    """Whether a process that lives trains the run in `folder`; a dead one holds nothing.

    Where the lock cannot be opened nobody holds it; who tries to train there will learn why.
    """
    try:
        handle = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
