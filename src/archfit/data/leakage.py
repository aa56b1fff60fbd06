"""How much of the held-out side also stands in the training side: shared 13-grams.

An n-gram is 13 words of text (case and blanks aside), or 13 units (letters, pixels, values,
ids) of other content, within one document. Of a large source only one n-gram in so many is
looked at, chosen by some of its bytes, so that equal n-grams are chosen on both sides. Runs
of one single unit (blank paper, a flat line) are not counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.blocks import Block

N = 13
WORDS = 0  # in place of a unit's size in bytes
LOOKED_AT = 1 << 18  # n-grams, about
MIXED_AT_ONCE = 1 << 14  # what fits a cache is twice as fast
_WORD_BYTES = 6
_FOLD = bytes(32 if code in b"\t\n\r\v\f" else code for code in bytes(range(256)).lower())
_MIX = 0x9E3779B97F4A7C15  # odd, so that the product's high bits depend on all of the key


@dataclass(frozen=True, kw_only=True, slots=True)
class Leakage:
    """Held-out 13-grams looked at, and how many of them the training side has too."""

    unit: str
    one_in: int
    heldout_ngrams: int
    shared_ngrams: int
    shared_documents: int  # held-out documents that are in the training side as they are

    @property
    def share(self) -> float | None:
        """The fraction shared; None where no n-gram was looked at."""
        return self.shared_ngrams / self.heldout_ngrams if self.heldout_ngrams else None


def sampling(content_bytes: int, unit: int) -> int:
    """One n-gram in this many (a power of two) is looked at."""
    ngrams = content_bytes // (unit or _WORD_BYTES)
    return 1 << max(0, (ngrams // LOOKED_AT).bit_length())


class NgramSketch:
    """The hashes of the chosen n-grams of one side, and how often each occurs."""

    def __init__(self, unit: int, one_in: int) -> None:
        self.unit, self.one_in = unit, one_in
        self.hashes: Counter[int] = Counter()

    def add(self, block: Block) -> None:
        """Note the chosen n-grams of the documents in a block."""
        import numpy as np

        glue = b"" if self.unit else b" "
        parts = block.parts if self.unit else [_folded(part) for part in block.parts]
        content = glue.join(parts)
        starts = self._starts(content)
        first = self._chosen(content, starts)
        ends = np.append(starts[N:], len(content))[first]
        documents = np.cumsum([len(part) + len(glue) for part in parts])
        inside = np.searchsorted(documents, starts[first], "right") == np.searchsorted(
            documents, starts[first + N - 1], "right"
        )
        spans = zip(starts[first][inside].tolist(), ends[inside].tolist(), strict=True)
        ngrams = [content[start:end] for start, end in spans]
        if self.unit:
            self.hashes.update(hash(one) for one in ngrams if one != one[: self.unit] * N)
        else:
            self.hashes.update(hash(one.rstrip()) for one in ngrams)

    def _starts(self, content: bytes) -> NDArray[np.int64]:
        """Where units or words start."""
        import numpy as np

        if self.unit:
            return np.arange(0, len(content), self.unit)
        blank = np.frombuffer(b" " + content, np.uint8) == 32
        return np.flatnonzero(blank[:-1] & ~blank[1:])

    def _chosen(self, content: bytes, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places in `starts` of the n-grams to look at."""
        import numpy as np

        count = max(0, len(starts) - N + 1)
        if self.one_in == 1 or not count:
            return np.arange(count)
        second = starts[:count] + (N * self.unit - 8) if self.unit else starts[1 : count + 1]
        eights = np.lib.stride_tricks.as_strided(
            np.frombuffer(content + b"\0" * 8, np.uint8)[:8].view(np.uint64),
            shape=(len(content) + 1,),
            strides=(1,),
        )
        found = [
            low + self._hits(eights, starts[low:high], second[low:high])
            for low, high in _ranges(count)
        ]
        return np.concatenate(found)

    def _hits(
        self, eights: NDArray[np.uint64], first: NDArray[np.int64], second: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Where eight bytes of the n-gram and eight others say that it is one of the chosen.

        The first eight bytes of units say little (blank paper), so they have no say of their own;
        those of words pass one in 2^half, which spares the others the second look.
        """
        import numpy as np

        bits = self.one_in.bit_length() - 1
        half = 0 if self.unit else bits // 2
        mixed = (eights[first] + np.uint64(1)) * np.uint64(_MIX)
        passed = np.flatnonzero(mixed <= np.uint64((1 << 64 - half) - 1))
        mixed = mixed[passed]
        mixed = (mixed ^ mixed >> np.uint64(29) ^ eights[second[passed]]) * np.uint64(_MIX)
        return passed[mixed <= np.uint64((1 << 64 - bits + half) - 1)]


def _folded(text: bytes) -> bytes:
    """The text in lower case, with one blank wherever it has some."""
    text = text.translate(_FOLD)
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text


def _ranges(count: int) -> list[tuple[int, int]]:
    """Places 0..count in pieces whose arrays fit a cache."""
    return [(low, min(low + MIXED_AT_ONCE, count)) for low in range(0, count, MIXED_AT_ONCE)]


def compare(train: NgramSketch, heldout: NgramSketch, shared_documents: int) -> Leakage:
    """The leakage between two sides whose sketches were made alike."""
    return Leakage(
        unit="word" if heldout.unit == WORDS else "unit",
        one_in=heldout.one_in,
        heldout_ngrams=heldout.hashes.total(),
        shared_ngrams=sum(n for ngram, n in heldout.hashes.items() if ngram in train.hashes),
        shared_documents=shared_documents,
    )
