"""What the first bytes of a source look like, for those who named the wrong kind."""

from __future__ import annotations

import csv
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.data.settings import Settings
from archfit.data.sources import find_files
from archfit.data.unpack import Ledger, unpacked_chunks

if TYPE_CHECKING:
    from archfit.data.unpack import SourceFile

LOOKED_AT = 1 << 16  # bytes
MOST_UNPACKED = 1 << 26
IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"PK\x03\x04", b"\x93NUMPY")
_SEQUENCE = re.compile(rb">[^\n]*\n[A-Za-z*\-\n\r]+")
_TUNE = re.compile(rb"^X:\s*\d+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Look:
    """What a source looks like, and the kind that would read it."""

    like: str
    kind: str


def look_at(source: str) -> Look | None:
    """The look of the first file of a source; None where there is none that can be opened."""
    try:
        file = find_files(source, Settings(kind="bytes"))[0]
        start = _start(file)
    except (OSError, ValueError):
        return None
    return _look(start) if start else None


def _start(file: SourceFile) -> bytes:
    chunks = unpacked_chunks(file, Ledger(MOST_UNPACKED, lambda _: None))
    return next(iter(chunks), b"")[:LOOKED_AT]


def _look(start: bytes) -> Look:
    if start.startswith(IMAGES):
        return Look("images or arrays", "images")
    if _SEQUENCE.match(start):
        return Look("sequences in FASTA", "fasta")
    if _TUNE.search(start) and b"\nK:" in start:
        return Look("tunes in ABC notation", "abc")
    try:
        text = start.decode("utf-8", errors="strict" if len(start) < LOOKED_AT else "ignore")
    except UnicodeDecodeError:
        return Look("bytes that are no UTF-8 text", "bytes")
    if b"\0" in start:
        return Look("binary data", "bytes")
    return Look("columns of numbers", "series") if _is_table(text) else Look("text", "text")


def _is_table(text: str) -> bool:
    """Whether most lines after the first are several numbers."""
    rows = list(itertools.islice(csv.reader(text.splitlines()[1:]), 50))
    numeric = [row for row in rows if len(row) > 1 and any(map(_is_number, row))]
    return len(rows) > 1 and len(numeric) > len(rows) / 2


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
