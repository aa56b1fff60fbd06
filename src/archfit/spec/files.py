"""Files on disk: their names, their size limits, and how they are read and written whole."""

import contextlib
import fcntl
import glob
import lzma
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from archfit.spec.codec import loads, parse_object
from archfit.spec.errors import refusal
from archfit.spec.packed import packed_file as packed_file
from archfit.spec.record import RunRecord

# A run
SPEC, RECORD, LOG, LOCK = "spec.json", "record.json", "log.jsonl", ".lock"
CHECKPOINTS, WEIGHTS = "checkpoint", "model.safetensors"
LARGEST_SPEC = 1 << 20  # bytes
LARGEST_RECORD = 1 << 28  # bytes; a record of a million evaluations has fewer
# A sweep
SWEEP, RESULTS = "sweep.json", "results.csv"
SWEEP_FORMAT = 1
LARGEST_SWEEP = 1 << 26  # bytes; 10,000 cells have a quarter of that
LARGEST_SWEEP_FILE = 10**6  # bytes of the TOML that a user writes
# Prepared data
DATA, TOKENIZER, TOKENIZER_CONFIG = "data.json", "tokenizer.json", "tokenizer_config.json"
TRAIN_TOKENS, HELDOUT_TOKENS, CHECKSUMS = "train.bin", "heldout.bin", "checksums.bin"
LARGEST_DATA = 10**7  # bytes of data.json, which lists a hundred files at most
LARGEST_TOKENIZER = 1 << 28  # bytes
# An advice, and a model of others
ADVICE, CONFIG = "advice.json", "config.json"
LARGEST_ADVICE = 10**6  # bytes
ASIDE = "-old"  # ends the name of a folder that is being replaced

Value = TypeVar("Value")


def load_file(kind: type[Value], path: Path, *, most_bytes: int) -> Value:
    """The dataclass in a JSON file; a file too large to hold one would fill the memory."""
    return loads(kind, read_bounded(path, most_bytes).decode())


def read_bounded(path: Path, most_bytes: int, so: str = ", more than such a file needs") -> bytes:
    """All of a file that may be anybody's, if it is a regular one and not larger than that."""
    with open_regular(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"it has over {most_bytes:,} bytes{so}")
    return content


def read_object(path: Path, *, most_bytes: int) -> dict[str, object]:
    """The JSON object that a file of at most `most_bytes` holds, which may be anybody's."""
    try:
        content = read_bounded(path, most_bytes)
    except ValueError as problem:
        raise ValueError(f"{path} cannot be read: {problem}") from problem
    return parse_object(content, where=str(path))


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """The file, open for reading; a pipe or a device is refused: reading it could last for ever."""
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is a pipe or a device; give a regular file")
        yield file


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in place at once; after a crash it is the old one or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with _alone_in(temporary) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
    except OSError as problem:  # that of a full disk does not name the file
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)  # half of it would only fill the disk further
        raise OSError(problem.errno, problem.strerror, str(path)) from problem
    flush_folder(path.parent)


@contextlib.contextmanager
def _alone_in(path: Path) -> Iterator[BinaryIO]:
    """A new file that nobody else writes: who wants the same waits until it has its last name.

    What a killed process left goes first, and a link, which would lead elsewhere.
    """
    while True:
        with contextlib.suppress(FileNotFoundError):
            if path.is_symlink() or path.stat().st_nlink > 1:
                path.unlink()
        with open_lock(path) as file:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            is_ours = False  # it may have been renamed while we waited
            with contextlib.suppress(FileNotFoundError):
                is_ours = os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
            if is_ours:
                file.truncate(0)
                yield file
                return


def open_lock(path: Path) -> BinaryIO:
    """The file to lock: one that is here, not where a link leads, as it is, without waiting."""
    return open(path, "ab", opener=_without_following)


def _without_following(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


@contextlib.contextmanager
def partial_folder(target: Path) -> Iterator[Path]:
    """A hidden folder beside `target` to write into, `.NAME.partial-1a2b`, gone at the end.

    Its process keeps it locked. A killed one leaves a folder that nobody locks, and the next who
    writes the same target removes it.
    """
    remove_stale(target)
    folder, lock = _locked_sibling(target)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # already gone if it was moved
        os.close(lock)


def _prefix(target: Path) -> str:
    return f".{target.name}.partial-"


def _locked_sibling(target: Path) -> tuple[Path, int]:
    """A new folder beside `target` and the lock on it, which dies with this process.

    Another process may take it for stale and remove it before it is locked: then once more.
    """
    while True:
        folder = target.with_name(_prefix(target) + secrets.token_hex(4))
        folder.mkdir()
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            if _try_lock(lock) is not False and folder.exists():
                return folder, lock
            os.close(lock)


def _try_lock(handle: int, kind: int = fcntl.LOCK_EX) -> bool | None:
    """Whether an open file could be locked without waiting; None where locks do not exist."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems: nobody can take it for stale either
        return None
    return True


def remove_stale(target: Path) -> None:
    """Remove what killed processes left beside `target`; a live one holds its lock.

    A process killed in the middle of replacing a folder leaves the old one aside: it comes back.
    """
    left = f"{glob.escape(_prefix(target))}*"
    for aside in target.parent.glob(f"{left}{ASIDE}"):
        if not target.exists():
            aside.rename(target)
    for folder in target.parent.glob(left):
        with contextlib.suppress(OSError):  # gone meanwhile
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if _try_lock(lock):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def flush_folder(folder: Path) -> None:
    """Put a folder's entries on disk, so that they survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe opens only when somebody writes into it


def read_record(folder: Path) -> RunRecord | None:
    """The record of the run in `folder`, or None while it is not done."""
    path = folder / RECORD
    try:
        return load_file(RunRecord, path, most_bytes=LARGEST_RECORD)
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
            raise refusal("other-run", path=path, name=record.spec.name)
        found.append(record)
    return tuple(found)


def packed_lines(kind: type[Value], name: str) -> Iterator[Value]:
    """The values, one a line, of a packed file that ships; none before the first are packed."""
    file = packed_file(name)
    if file.is_file():
        for text in lzma.decompress(file.read_bytes()).decode().splitlines():
            yield loads(kind, text)


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
        with open(folder / LOCK, "rb", opener=_without_following) as file:
            return _try_lock(file.fileno(), fcntl.LOCK_SH) is False
    except OSError:
        return False
