"""The first reading of a source: how long each document is, its hash, and what its letters are."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.blocks import Block

SAMPLE_UNITS = 1 << 18


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """The documents of a source in order: bytes of content and the start of its SHA-256."""

    lengths: NDArray[np.int64]
    digests: NDArray[np.uint64]

    @property
    def bytes(self) -> int:
        """Content of all documents."""
        return int(self.lengths.sum())


class Gatherer(Protocol):
    """Something that looks at all content, a block at a time, and remembers little."""

    def add(self, content: bytes) -> None:
        """Look at the content of a block."""


def survey(blocks: Iterable[Block], gatherer: Gatherer, ignored_at_end: bytes = b"") -> Survey:
    """Read all of `blocks` once; digests leave out the bytes of `ignored_at_end` that end one."""
    import numpy as np

    lengths, digests = array("q"), array("Q")
    digest, length = _Digest(ignored_at_end), 0
    for block in blocks:
        gatherer.add(b"".join(block.parts))
        last = len(block.parts) - 1
        for index, part in enumerate(block.parts):
            digest.update(part)
            length += len(part)
            if index == last and not block.complete:
                break
            if length:
                lengths.append(length)
                digests.append(digest.start)
            digest, length = _Digest(ignored_at_end), 0
    return Survey(lengths=np.array(lengths, np.int64), digests=np.array(digests, np.uint64))


class _Digest:
    """The SHA-256 of a document that comes in parts, without those of some bytes that end it."""

    def __init__(self, ignored_at_end: bytes) -> None:
        self._ignored = ignored_at_end
        self._whole = self._trimmed = hashlib.sha256()

    def update(self, part: bytes) -> None:
        """Take in the next part; what may be the end of the document counts once more follows."""
        if kept := part.rstrip(self._ignored):
            self._whole.update(kept)
            self._trimmed = self._whole
        if len(kept) < len(part):
            self._whole = self._whole.copy()
            self._whole.update(part[len(kept) :])

    @property
    def start(self) -> int:
        """The first 8 bytes as a little-endian number."""
        return int.from_bytes(self._trimmed.digest()[:8], "little")


class Nothing:
    """For kinds whose vocabulary does not depend on the content."""

    def add(self, content: bytes) -> None:
        """Look away."""


class SeenCharacters:
    """Which characters occur in UTF-8 text."""

    def __init__(self) -> None:
        import numpy as np

        self._seen = np.zeros(0x110000, bool)

    def add(self, content: bytes) -> None:
        """Mark the characters of the text."""
        import numpy as np

        self._seen[np.frombuffer(content.decode().encode("utf-32-le"), "<u4")] = True

    @property
    def alphabet(self) -> str:
        """All characters seen, by code point."""
        import numpy as np

        return "".join(map(chr, np.flatnonzero(self._seen)))


class LetterCounts:
    """How often each letter occurs in sequences."""

    def __init__(self) -> None:
        import numpy as np

        self._counts = np.zeros(256, np.int64)

    def add(self, content: bytes) -> None:
        """Count the letters."""
        import numpy as np

        self._counts += np.bincount(np.frombuffer(content, np.uint8), minlength=256)

    @property
    def counts(self) -> dict[str, int]:
        """The count of each letter that occurs."""
        return {chr(code): int(count) for code, count in enumerate(self._counts) if count}


class EvenSample:
    """Values chosen by a hash of their number, at most `SAMPLE_UNITS`, and the extremes of all."""

    def __init__(self, dtype: str, columns: int) -> None:
        import numpy as np

        self._dtype, self._columns = dtype, columns
        self._kept = np.empty((0, columns), dtype)
        self._hashes = np.empty(0, np.uint64)  # of the numbers of the values kept
        self._seen, self._highest_hash = 0, (1 << 64) - 1
        self.lowest, self.highest = float("inf"), float("-inf")

    def add(self, content: bytes) -> None:
        """Keep the values whose number has a small hash; halve what is small when too many."""
        import numpy as np

        values = np.frombuffer(content, self._dtype).reshape(-1, self._columns)
        if not len(values):
            return
        self.lowest = min(self.lowest, float(values.min()))
        self.highest = max(self.highest, float(values.max()))
        hashes = self._next_hashes(len(values))
        small = hashes <= np.uint64(self._highest_hash)
        self._kept = np.concatenate([self._kept, values[small]])
        self._hashes = np.concatenate([self._hashes, hashes[small]])
        while len(self._kept) > SAMPLE_UNITS:
            self._highest_hash >>= 1
            small = self._hashes <= np.uint64(self._highest_hash)
            self._kept, self._hashes = self._kept[small], self._hashes[small]

    def _next_hashes(self, count: int) -> NDArray[np.uint64]:
        """SplitMix64 of the next `count` numbers: no period of the data falls in step with it."""
        import numpy as np

        numbers = np.arange(self._seen + 1, self._seen + count + 1, dtype=np.uint64)
        self._seen += count
        mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return mixed ^ (mixed >> np.uint64(31))

    @property
    def values(self) -> NDArray[np.generic]:
        """What was kept, in order."""
        return self._kept
