"""Specs and records from files that anybody may have written, and files that appear whole."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from archfit.spec.codec import loads

Value = TypeVar("Value")


def load_file(kind: type[Value], path: Path, *, most_bytes: int) -> Value:
    """The dataclass in a JSON file; a file too large to hold one would fill the memory."""
    with open_regular(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"it has over {most_bytes:,} bytes, more than any {kind.__name__}")
    return loads(kind, content.decode())


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
        temporary.unlink(missing_ok=True)  # left by a killed process, or a link to elsewhere
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as problem:  # that of a full disk does not name the file
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)  # half of it would only fill the disk further
        raise OSError(problem.errno, problem.strerror, str(path)) from problem
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Put a folder's entries on disk, so that they survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe opens only when somebody writes into it
