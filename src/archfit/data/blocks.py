"""Documents on their way through the room: lists of byte strings, a few megabytes at a time.

Whatever the kind, the content of a document is bytes: UTF-8 text, sequence letters, pixels in
raster order (RGB: three bytes each), series values (little-endian float64), token ids. A document
larger than a block travels in several parts, so nothing here grows with the largest document.
"""

from __future__ import annotations

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


def split_documents(
    chunks: Iterable[bytes], separator: bytes, *, strip: bytes = b""
) -> Iterator[Block]:
    """What lies between occurrences of `separator` in a stream (empty documents are no documents).

    What follows the last separator of a chunk waits for more unless it is long; then all of it but
    a possible beginning of the next separator goes out, cut between UTF-8 characters. The bytes in
    `strip` are taken off both ends of a document.
    """
    rest, begun = b"", False  # begun: a part of the document that `rest` belongs to is already out
    for chunk in chunks:
        *ended, rest = (rest + chunk).split(separator)
        parts = _stripped(ended, begun, strip)
        begun = begun and not ended
        if len(rest) >= HELD_PART_BYTES:
            cut = character_cut(rest, len(rest) - len(separator))
            yield Block([*parts, rest[:cut] if begun else rest[:cut].lstrip(strip)], complete=False)
            rest, begun = rest[cut:], True
        elif parts:
            yield Block(parts, complete=True)
    yield Block(_stripped([rest], begun, strip), complete=True)


def _stripped(ended: list[bytes], begun: bool, strip: bytes) -> list[bytes]:
    """Ends of documents without the bytes in `strip`; only the first may have been begun before."""
    if not strip:
        return ended
    return [
        part.rstrip(strip) if begun and index == 0 else part.strip(strip)
        for index, part in enumerate(ended)
    ]


def character_cut(text: bytes, cut: int) -> int:
    """The last place up to `cut` that is not inside a UTF-8 character."""
    for place in range(cut, max(cut - 4, -1), -1):
        if place >= len(text) or text[place] & 0xC0 != 0x80:
            return place
    return cut  # four continuation bytes in a row: not UTF-8, any cut will do
