"""Files as streams of unpacked bytes: hashed while read, bounded, and refused when they change."""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from archfit.data.blocks import BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

PACKED = (".gz", ".xz", ".zst")
XZ_MEMORY_BYTES = 512 << 20  # dictionaries beyond this are refused; `xz -9` needs 65 MB
ZSTD_WINDOW_BYTES = 128 << 20  # what `zstd -d` itself accepts without --long
ZSTD_FEED_BYTES = 1 << 11  # one zstd block of 4 bytes can give 128 KB: feed little at a time


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read and the name it goes by: relative to the folder it was found in."""

    path: Path
    name: str

    @property
    def suffix(self) -> str:
        """Lower-case ending that says the format: `.txt` for `Notes.TXT.xz`."""
        return self.path.with_suffix("").suffix.lower() if self.packed else self.path.suffix.lower()

    @property
    def packed(self) -> bool:
        """Whether reading it means unpacking it."""
        return self.path.suffix.lower() in PACKED


@dataclass(frozen=True, slots=True)
class InputFile:
    """What was read: a file's name, its size on disk and its hash."""

    name: str
    bytes: int
    sha256: str


class Ledger:
    """What one reading has met so far: files with their hashes, and bytes against the limit."""

    def __init__(self, max_bytes: int, progress: Callable[[int], None]) -> None:
        self.files: dict[str, InputFile] = {}
        self.facts: dict[str, int] = {}  # rows, columns and channels of images
        self._max_bytes, self._progress = max_bytes, progress
        self._left = max_bytes

    def add(self, file: InputFile) -> None:
        """Note a file that was read to its end; read twice, it must be the same."""
        if self.files.setdefault(file.name, file) != file:
            raise _changed(file.name)

    def again(self) -> Ledger:
        """A ledger for reading the same files once more, with the full limit and no progress."""
        other = Ledger(self._max_bytes, lambda _: None)
        other.files = self.files
        return other

    def advance(self, count: int) -> None:
        """Tell whoever watches that `count` more bytes of the files were read."""
        self._progress(count)

    def spend(self, count: int, name: str) -> None:
        """Count bytes that `name` unpacks to; refuse those past the limit."""
        self._left -= count
        if self._left < 0:
            raise ValueError(
                f"{name} takes the unpacked input past {self._max_bytes} bytes; "
                "if that is what you expect, raise --max-bytes"
            )


def unpacked_chunks(file: SourceFile, ledger: Ledger) -> Iterator[bytes]:
    """The content of `file`, unpacked by its ending (.gz, .xz, .zst), a few megabytes at a time."""
    chunks = raw_chunks(file, ledger)
    if file.packed:
        chunks = _unpack(chunks, _machine_for(file.path.suffix.lower()), file.name)
    for chunk in chunks:
        ledger.spend(len(chunk), file.name)
        yield chunk


def raw_chunks(file: SourceFile, ledger: Ledger) -> Iterator[bytes]:
    """The bytes of `file` as they lie on disk; afterwards its hash is in the ledger.

    A file that changes meanwhile is refused: its hash would name something that never existed.
    """
    if not stat.S_ISREG(os.stat(file.path).st_mode):  # a pipe would block, a device never end
        raise ValueError(f"{file.name} is not a regular file; write its content to one first")
    digest, size = hashlib.sha256(), 0
    with open(file.path, "rb") as stream:
        before = os.fstat(stream.fileno())
        while size <= before.st_size and (chunk := stream.read(BLOCK_BYTES)):
            digest.update(chunk)
            size += len(chunk)
            ledger.advance(len(chunk))
            yield chunk
        after = os.fstat(stream.fileno())
    if (size, after.st_size, after.st_mtime_ns) != (before.st_size, size, before.st_mtime_ns):
        raise _changed(file.name)
    ledger.add(InputFile(file.name, size, digest.hexdigest()))


def _changed(name: str) -> ValueError:
    return ValueError(
        f"{name} changed while it was read; run again when nothing writes to it any more"
    )


def read_and_hash(file: SourceFile, ledger: Ledger) -> None:
    """Put the hash of a file into the ledger that some library then reads by itself."""
    for _ in raw_chunks(file, ledger):
        pass


def lines_of(file: SourceFile, ledger: Ledger) -> Iterator[bytes]:
    """The lines of a file without their ends; none may be longer than a few blocks."""
    rest = b""
    for chunk in unpacked_chunks(file, ledger):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if len(rest) > 16 * BLOCK_BYTES:
            raise ValueError(
                f"{file.name} has a line of more than {16 * BLOCK_BYTES} bytes; "
                f"is it really {file.suffix}?"
            )
    if rest:
        yield rest


class _Machine(Protocol):
    """A decompressor as `lzma` has them: bounded output, the rest kept for the next call."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _unpack(
    chunks: Iterable[bytes], machine_for: Callable[[], _Machine], name: str
) -> Iterator[bytes]:
    """The unpacked stream; packed streams may follow one another, with zeros between them."""
    machine = machine_for()
    for data in chunks:
        while data or not machine.needs_input:
            if machine.eof:
                data = data.lstrip(b"\0")
                if not data:
                    break
                machine = machine_for()
            yield _step(machine, data, name)
            data = machine.unused_data if machine.eof else b""
    if not machine.eof:
        raise ValueError(f"{name} is truncated: its packed data ends too early; fetch it again")


def _step(machine: _Machine, data: bytes, name: str) -> bytes:
    try:
        return machine.decompress(data, BLOCK_BYTES)
    except Exception as problem:  # each library has its own error class
        raise ValueError(
            f"{name} is damaged or needs more memory to unpack than allowed ({problem}); "
            "fetch or pack it again"
        ) from problem


def _machine_for(suffix: str) -> Callable[[], _Machine]:
    if suffix == ".gz":
        return _Gzip
    if suffix == ".zst":
        return _Zstd
    import lzma

    return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES)


class _Gzip:
    """zlib's decompressor, which hands back input it did not get to, with lzma's manners."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        unpacked = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        self.needs_input = len(unpacked) < max_length
        return unpacked


class _Zstd:
    """zstandard's decompressor, whose output has no bound of its own, with lzma's manners."""

    def __init__(self) -> None:
        try:
            import zstandard
        except ImportError as problem:
            raise ValueError(
                ".zst files need the zstandard package; run pip install 'archfit[data]'"
            ) from problem
        machine = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
        self._zstd = machine.decompressobj()
        self._waiting = b""

    @property
    def eof(self) -> bool:
        return self._zstd.eof

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        return self._zstd.unused_data + self._waiting

    def decompress(self, data: bytes, max_length: int) -> bytes:
        waiting, place, size = self._waiting + data, 0, 0
        unpacked: list[bytes] = []
        while place < len(waiting) and size < max_length and not self.eof:
            unpacked.append(self._zstd.decompress(waiting[place : place + ZSTD_FEED_BYTES]))
            place += ZSTD_FEED_BYTES
            size += len(unpacked[-1])
        self._waiting = waiting[place:]
        return b"".join(unpacked)
