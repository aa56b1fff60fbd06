"""Files as streams of unpacked bytes, hashed and bounded, and streams as blocks of documents.

Whatever the kind, the content of a document is bytes: UTF-8 text, sequence letters, pixels in
raster order (RGB: three bytes each), series values (little-endian float64), token ids. A document
larger than a block travels in several parts, so nothing here grows with the largest document.
"""

import contextlib
import hashlib
import importlib
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from archfit.spec.errors import refusal, refuse_if

BLOCK_BYTES = 1 << 22
HELD_PART_BYTES = 1 << 20  # an unfinished document is passed on once it is this long
DOCUMENT_LINE = "<|doc|>"  # between documents of text; the separator of a BPE is called so, too
Errors: TypeAlias = type[Exception] | tuple[type[Exception], ...]
Facts: TypeAlias = dict[str, int]  # rows, columns and channels of images
PACKED = (".gz", ".xz", ".zst")
XZ_MEMORY_BYTES = 512 << 20  # dictionaries beyond this are refused; `xz -9` needs 65 MB
ZSTD_WINDOW_BYTES = 128 << 20  # what `zstd -d` itself accepts without --long
FEED_BYTES = 1 << 11  # 4 bytes of zstd can give 128 KB, one of xz 7 KB: unpack little at a time


@dataclass(frozen=True, slots=True)
class InputFile:
    """What was read: a file's name, its size on disk and its hash."""

    name: str
    bytes: int
    sha256: str


@dataclass
class Ledger:
    """What one reading has met so far: files with their hashes, and bytes against the limit."""

    max_bytes: int
    advance: Callable[[int], None] = lambda _: None  # told the bytes of files read since last told
    facts: Facts = field(default_factory=dict)  # images must agree in them
    files: dict[str, InputFile] = field(default_factory=dict)
    spent: int = 0  # of the bytes allowed

    def add(self, file: InputFile) -> None:
        """Note a file that was read to its end; read twice, it must be the same."""
        known = self.files.setdefault(file.name, file)
        refuse_if(known != file, "changed-while-read", what=file.name)

    def spend(self, count: int, name: str) -> None:
        """Count bytes that `name` unpacks to; refuse those past the limit."""
        self.spent += count
        refuse_if(self.spent > self.max_bytes, "past-max-bytes", name=name, most=self.max_bytes)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read and the name it goes by: relative to the folder it was found in."""

    path: Path
    name: str
    is_dataset: bool = False  # of Hugging Face: the name says which, and there is no file

    @property
    def suffix(self) -> str:
        """Lower-case ending that says the format: `.txt` for `Notes.TXT.xz`."""
        ending = self.path.suffix.lower()
        return self.path.with_suffix("").suffix.lower() if ending in PACKED else ending

    def unpacked(self, ledger: Ledger) -> Iterator[bytes]:
        """The content, unpacked by the name's ending (.gz, .xz, .zst), some megabytes at a time."""
        chunks = self.chunks(ledger)
        if self.path.suffix.lower() in PACKED:
            chunks = (b"".join(block.parts) for block in blocks_of(_unpack(chunks, self)))
        for chunk in chunks:
            ledger.spend(len(chunk), self.name)
            yield chunk

    def chunks(self, ledger: Ledger) -> Iterator[bytes]:
        """The bytes of the file as they lie on disk; afterwards its hash is in the ledger.

        A file that changes meanwhile is refused: its hash would name something that never existed.
        """
        mode = os.stat(self.path).st_mode  # a pipe would block, a device never end
        refuse_if(not stat.S_ISREG(mode), "irregular-file", name=self.name)
        digest, size = hashlib.sha256(), 0
        with open(self.path, "rb") as stream:
            before = os.fstat(stream.fileno())
            while size <= before.st_size and (chunk := stream.read(BLOCK_BYTES)):
                digest.update(chunk)
                size += len(chunk)
                ledger.advance(len(chunk))
                yield chunk
            after = os.fstat(stream.fileno())
        if (size, after.st_size, after.st_mtime_ns) != (before.st_size, size, before.st_mtime_ns):
            raise refusal("changed-while-read", what=self.name)
        ledger.add(InputFile(self.name, size, digest.hexdigest()))

    def hash_into(self, ledger: Ledger) -> None:
        """Put the hash of the file, which some library then reads by itself, into the ledger."""
        for _ in self.chunks(ledger):
            pass

    def lines(self, ledger: Ledger) -> Iterator[bytes]:
        """The lines without their ends; none may be longer than a few blocks."""
        rest = b""
        for chunk in self.unpacked(ledger):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            most, suffix = 16 * BLOCK_BYTES, self.suffix
            refuse_if(len(rest) > most, "long-line", name=self.name, most=most, suffix=suffix)
        if rest:
            yield rest


@contextlib.contextmanager
def refused(
    errors: Errors, row: str, /, *, passing: Errors = MemoryError, **given: object
) -> Iterator[None]:
    """Turn such errors of a library into the refusal of this name, which quotes their `reason`."""
    try:
        yield
    except passing:  # a sentence of our own, or no fault of the file
        raise
    except errors as problem:
        reason = str(problem).partition(" <_io.")[0]
        raise refusal(row, reason=reason, **given) from problem


def optional_module(name: str, needed: str) -> Any:
    """A library of the extra `data`, or a refusal that says what needs it and how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        raise ValueError(f"{needed} package; run pip install 'archfit[data]'") from problem


def _unpack(chunks: Iterable[bytes], file: SourceFile) -> Iterator[bytes]:
    """The unpacked stream; packed streams may follow one another, with zeros between them.

    The file objects of gzip, lzma and zstandard are no substitute: they have no limit of memory
    (lzma), and take a truncated file for a whole one (zstandard).
    """
    suffix = file.path.suffix.lower()
    unpacker = _decompressor(suffix)
    for chunk in chunks:
        for start in range(0, len(chunk), FEED_BYTES):
            data = chunk[start : start + FEED_BYTES]
            while data := data.lstrip(b"\0") if unpacker.eof else data:
                unpacker = _decompressor(suffix) if unpacker.eof else unpacker
                with refused(Exception, "damaged-packing", name=file.name):  # a zoo
                    yield unpacker.decompress(data)
                data = unpacker.unused_data if unpacker.eof else b""
    refuse_if(not unpacker.eof, "truncated-file", name=file.name)


def _decompressor(suffix: str) -> Any:
    """What unpacks one stream a little at a time, with bounded memory."""
    if suffix == ".gz":
        return zlib.decompressobj(wbits=31)
    if suffix == ".xz":
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES)
    zstandard = optional_module("zstandard", ".zst files need the zstandard")
    return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES).decompressobj()


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """Parts of documents: each ends one, except that the last does so only if `complete`.

    A document whose parts are all empty is none: readers may yield such, nobody counts them.
    """

    parts: list[bytes]
    complete: bool

    def ends(self) -> Iterator[tuple[bytes, bool]]:
        """Each part, and whether a document ends with it."""
        last = len(self.parts) - 1
        return ((part, self.complete or at < last) for at, part in enumerate(self.parts))


Blocks: TypeAlias = Iterator[DocumentBlock]


def blocks_of(documents: Iterable[bytes]) -> Blocks:
    """Whole documents gathered into blocks of about `BLOCK_BYTES`."""
    parts, size = list[bytes](), 0
    for document in documents:
        parts.append(document)
        size += len(document)
        if size >= BLOCK_BYTES:
            yield DocumentBlock(parts, complete=True)
            parts, size = [], 0
    if parts:
        yield DocumentBlock(parts, complete=True)


def documents_between(chunks: Iterable[bytes], mark: bytes, *, is_line: bool = True) -> Blocks:
    r"""What lies between lines that read `mark` (or, as `>` in FASTA, begin with it) in a stream.

    An empty mark means blank lines. Lines end with \n or \r\n, each as it likes; the end of the
    line before belongs to the mark. What follows the last mark of a chunk waits for more unless it
    is long; then all of it but a possible beginning of the next mark goes out, cut between UTF-8
    characters.
    """
    between = re.compile(rb"\n" + re.escape(mark) + (rb"(?=\r?\n)" if is_line else b""))
    lead = re.compile(rb"(?:\r?\n)?" if is_line else b"")  # the end of the mark's line
    held, rest, begun = len(mark) + 4, b"\n", False  # begun: a part of that document is out
    for chunk in chunks:
        *ended, rest = between.split(rest + chunk)
        parts = [part.removesuffix(b"\r") for part in ended]
        parts = [*parts[:begun], *(lead.sub(b"", part, count=1) for part in parts[begun:])]
        begun = begun and not ended
        if len(rest) >= HELD_PART_BYTES + 2 * held:
            cut = character_cut(rest, len(rest) - held)
            part = rest[:cut] if begun else lead.sub(b"", rest[:cut], count=1)
            yield DocumentBlock([*parts, part], complete=False)
            rest, begun = rest[cut:], True
        elif parts:
            yield DocumentBlock(parts, complete=True)
    rest = re.sub(rb"\r?\n" + re.escape(mark) + rb"\Z", b"", rest)  # a last line may not end
    yield DocumentBlock([rest if begun else lead.sub(b"", rest, count=1)], complete=True)


def character_cut(text: bytes, cut: int) -> int:
    """The last place up to `cut` that is not inside a UTF-8 character."""
    for place in range(cut, max(cut - 4, -1), -1):
        if place >= len(text) or text[place] & 0xC0 != 0x80:
            return place
    return cut  # four continuation bytes in a row: not UTF-8, any cut will do
