"""Documents on their way through the room: lists of byte strings, a few megabytes at a time.

Whatever the kind, the content of a document is bytes: UTF-8 text, sequence letters, pixels in
raster order (RGB: three bytes each), series values (little-endian float64), token ids. A document
larger than a block travels in several parts, so nothing here grows with the largest document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK_BYTES = 1 << 22
HELD_PART_BYTES = 1 << 20  # an unfinished document is passed on once it is this long


@dataclass(frozen=True, slots=True)
class Block:
    """Parts of documents: each ends one, except that the last does so only if `complete`.

    A document whose parts are all empty is none: readers may yield such, nobody counts them.
    """

    parts: list[bytes]
    complete: bool


def blocks_of(documents: Iterable[bytes]) -> Iterator[Block]:
    """Whole documents gathered into blocks of about `BLOCK_BYTES`."""
    parts: list[bytes] = []
    size = 0
    for document in documents:
        parts.append(document)
        size += len(document)
        if size >= BLOCK_BYTES:
            yield Block(parts, complete=True)
            parts, size = [], 0
    if parts:
        yield Block(parts, complete=True)


class Separator:
    """Bytes between documents, wherever they stand."""

    def __init__(self, *, between: bytes) -> None:
        self.between = between
        self.longest = len(between)

    def split(self, text: bytes) -> list[bytes]:
        """What lies between separators; repetitions of them may still cling to it."""
        return text.split(self.between)

    def start_of(self, part: bytes) -> bytes:
        """`part`, which starts a document, without what clings to its start."""
        return part

    def end_of(self, part: bytes) -> bytes:
        """`part`, which ends a document, without what clings to its end."""
        return part


class LineSeparator(Separator):
    """A line between documents that reads `mark`; an empty mark means blank lines.

    Lines end with `\\n` or `\\r\\n`, each as it likes; the end of the line before belongs to it.
    """

    def __init__(self, mark: bytes) -> None:
        super().__init__(between=b"\r\n" + mark + b"\r\n")
        self.mark = mark
        line = re.escape(mark) + rb"\r?\n"
        self._found = re.compile(rb"\n" + line)
        self._leads = re.compile(rb"(?:" + line + rb")*")

    def split(self, text: bytes) -> list[bytes]:
        """What lies between separators, of which `between` is the longest form."""
        *ended, rest = self._found.split(text)
        return [*(part.removesuffix(b"\r") for part in ended), rest]

    def start_of(self, part: bytes) -> bytes:
        """`part`, which starts a document, without separators; nothing if it is just a mark."""
        leads = self._leads.match(part)
        part = part[leads.end() :] if leads else part
        return b"" if part == self.mark else part

    def end_of(self, part: bytes) -> bytes:
        """`part`, which ends a document, without blank lines if those are separators."""
        while not self.mark and part.endswith(b"\n"):
            part = part[:-1].removesuffix(b"\r")
        return part


def split_documents(chunks: Iterable[bytes], separator: Separator) -> Iterator[Block]:
    """What lies between separators in a stream (empty documents are no documents).

    What follows the last separator of a chunk waits for more unless it is long; then all of it but
    a possible beginning of the next separator goes out, cut between UTF-8 characters.
    """
    rest, begun = b"", False  # begun: a part of the document that `rest` belongs to is already out
    for chunk in chunks:
        *ended, rest = separator.split(rest + chunk)
        parts = _trimmed(ended, separator, begun=begun)
        begun = begun and not ended
        if len(rest) >= HELD_PART_BYTES + 2 * separator.longest:
            rest = rest if begun else separator.start_of(rest)
            cut = character_cut(rest, len(rest) - separator.longest)
            yield Block([*parts, rest[:cut]], complete=False)
            rest, begun = rest[cut:], True
        elif parts:
            yield Block(parts, complete=True)
    yield Block(_trimmed([rest], separator, begun=begun), complete=True)


def _trimmed(ended: list[bytes], separator: Separator, *, begun: bool) -> list[bytes]:
    """Ends of documents, of which the first may have begun before, without what clings to them."""
    started = [
        part if begun and index == 0 else separator.start_of(part)
        for index, part in enumerate(ended)
    ]
    return [separator.end_of(part) for part in started]


def character_cut(text: bytes, cut: int) -> int:
    """The last place up to `cut` that is not inside a UTF-8 character."""
    for place in range(cut, max(cut - 4, -1), -1):
        if place >= len(text) or text[place] & 0xC0 != 0x80:
            return place
    return cut  # four continuation bytes in a row: not UTF-8, any cut will do
