"""Vocabularies other than BPE: how content becomes token ids and back.

Each ends a document by a separator token, the id after its last ordinary one. `size` counts all
rows an embedding table needs; it may be padded beyond the ids in use. `decode` gives the content
of the documents in a stream of ids (which may start inside one).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from archfit.data.blocks import character_cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.blocks import Block

    Ids = NDArray[np.integer]

FORMAT = "archfit-vocabulary"
FORMAT_VERSION = 1


class Vocabulary(Protocol):
    """What every vocabulary can do."""

    @property
    def name(self) -> str:
        """The word for it in data.json."""

    @property
    def size(self) -> int:
        """Rows an embedding table needs."""

    @property
    def separator(self) -> int | None:
        """The id that ends a document; None where the ids came without one."""

    def cut(self, part: bytes, limit: int) -> int:
        """The last place up to `limit` where `part` may be cut and both sides encoded alone."""

    def encode(self, block: Block) -> Ids:
        """The ids of a block, a separator after each document that ends in it."""

    def decode(self, ids: Ids) -> list[bytes]:
        """The documents of a stream of ids; the last may be unfinished."""

    def as_json(self) -> str:
        """The content of tokenizer.json."""


def described(**values: object) -> str:
    """A tokenizer.json of our own."""
    return json.dumps({"format": FORMAT, "version": FORMAT_VERSION} | values, indent=1) + "\n"


def split_ids(ids: Ids, separator: int) -> list[Ids]:
    """The ids of each document, without separators."""
    import numpy as np

    ends = np.flatnonzero(ids == separator)
    starts = np.concatenate([[0], ends + 1])
    documents = [
        ids[start:end] for start, end in zip(starts, [*ends.tolist(), len(ids)], strict=True)
    ]
    return documents if len(documents[-1]) else documents[:-1]


def with_separators(ids: Ids, counts: Sequence[int], block: Block, separator: int) -> Ids:
    """`ids` with a separator after each document that ends in the block of `counts` ids a part."""
    import numpy as np

    ends = np.cumsum(np.asarray(counts, np.int64))
    return np.insert(ids, ends if block.complete else ends[:-1], separator)


def encode_upper_bits(block: Block, bits: int, separator: int) -> Ids:
    """One token a byte, its upper `bits`; shifting is far faster than looking up in a table."""
    import numpy as np

    joined = b"\0".join([*block.parts, b""] if block.complete else block.parts)
    ids = (np.frombuffer(joined, np.uint8) >> np.uint8(8 - bits)).astype(np.uint16)
    ends = np.cumsum([len(part) + 1 for part in block.parts]) - 1
    ids[ends if block.complete else ends[:-1]] = separator
    return ids


@dataclass(frozen=True, kw_only=True, slots=True)
class Bytes:
    """The 256 bytes by their value, and the separator."""

    size: int = 257
    separator: int = 256
    name: str = "bytes"

    def cut(self, part: bytes, limit: int) -> int:
        """Anywhere, but if it is text then between characters."""
        return character_cut(part, limit)

    def encode(self, block: Block) -> Ids:
        """One id a byte."""
        return encode_upper_bits(block, 8, self.separator)

    def decode(self, ids: Ids) -> list[bytes]:
        """The bytes of each document."""
        return [document.astype("u1").tobytes() for document in split_ids(ids, self.separator)]

    def as_json(self) -> str:
        """Nothing but its size."""
        return described(vocabulary=self.name, size=self.size, separator=self.separator)


@dataclass(frozen=True, kw_only=True, slots=True)
class Characters:
    """The characters of `alphabet` in its order, and the separator."""

    alphabet: str
    size: int
    name: str = "characters"

    @property
    def separator(self) -> int:
        """The id after the last character."""
        return len(self.alphabet)

    def cut(self, part: bytes, limit: int) -> int:
        """Between characters."""
        return character_cut(part, limit)

    def encode(self, block: Block) -> Ids:
        """One id a character."""
        import numpy as np

        texts = [part.decode() for part in block.parts]
        known = code_points(self.alphabet)
        codes = code_points("".join(texts))
        ids = np.searchsorted(known, codes)
        strange = codes[known[np.minimum(ids, len(known) - 1)] != codes]
        if strange.size:
            raise ValueError(
                f"character {chr(strange[0])!r} is not in the alphabet of {len(known)}; "
                "prepare again from a source that holds it"
            )
        return with_separators(ids, [len(text) for text in texts], block, self.separator)

    def decode(self, ids: Ids) -> list[bytes]:
        """The text of each document, in UTF-8."""
        known = code_points(self.alphabet)
        return [
            known[document].tobytes().decode("utf-32-le").encode()
            for document in split_ids(ids, self.separator)
        ]

    def as_json(self) -> str:
        """Its alphabet."""
        return described(vocabulary=self.name, alphabet=self.alphabet, size=self.size)


def code_points(text: str) -> NDArray[np.uint32]:
    """The Unicode numbers of the characters of `text`."""
    import numpy as np

    return np.frombuffer(text.encode("utf-32-le"), "<u4")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kmers:
    """Groups of `k` letters, single letters for what is left over at the end, and the separator.

    With A letters the ids are A^k groups (the first letter weighs most), then, if k > 1, A single
    letters. `mapped` says which letters are read as another.
    """

    alphabet: str
    k: int
    size: int
    mapped: dict[str, str] = field(default_factory=dict)
    name: str = "k-mers"

    @property
    def separator(self) -> int:
        """The id after groups and single letters."""
        letters = len(self.alphabet)
        return int(letters**self.k) + (letters if self.k > 1 else 0)

    def cut(self, part: bytes, limit: int) -> int:  # noqa: ARG002  # the content does not matter
        """Between groups."""
        return limit - limit % self.k

    def encode(self, block: Block) -> Ids:
        """One id for each k letters, then the letters left over, then the separator."""
        import numpy as np

        letters = self._letters(b"".join(block.parts))
        lengths = np.array([len(part) for part in block.parts], np.int64)
        starts = np.cumsum(lengths) - lengths
        groups, singles = lengths // self.k, lengths % self.k
        ends_here = np.ones(len(lengths), np.int64)
        ends_here[-1] = block.complete
        sizes = groups + singles + ends_here
        places = np.cumsum(sizes) - sizes
        ids = np.full(int(sizes.sum()), self.separator, np.uint32)
        base = len(self.alphabet)
        weights = base ** np.arange(self.k - 1, -1, -1)
        first = _ranges(starts, groups, step=self.k)
        ids[_ranges(places, groups)] = letters[first[:, None] + np.arange(self.k)] @ weights
        left = _ranges(starts + groups * self.k, singles)
        ids[_ranges(places + groups, singles)] = letters[left] + base**self.k
        return ids

    def _letters(self, content: bytes) -> NDArray[np.int64]:
        """Places in the alphabet."""
        import numpy as np

        table = np.full(256, -1, np.int64)
        for place, letter in enumerate(self.alphabet):
            table[ord(letter)] = place
        for letter, other in self.mapped.items():
            table[ord(letter)] = self.alphabet.index(other)
        letters = table[np.frombuffer(content, np.uint8)]
        if letters.size and letters.min() < 0:
            strange = chr(content[int(letters.argmin())])
            raise ValueError(
                f"letter {strange!r} is not in the alphabet {self.alphabet}; prepare again with it"
            )
        return letters

    def decode(self, ids: Ids) -> list[bytes]:
        """The letters of each document (after mapping)."""
        return [self._content(document) for document in split_ids(ids, self.separator)]

    def _content(self, ids: Ids) -> bytes:
        import numpy as np

        base = len(self.alphabet)
        group = ids.astype(np.int64)[:, None] // base ** np.arange(self.k - 1, -1, -1) % base
        single = (ids >= base**self.k)[:, None]
        group = np.where(single, ids.astype(np.int64)[:, None] - base**self.k, group)
        keep = ~single | (np.arange(self.k) == 0)
        letters = np.frombuffer(self.alphabet.encode(), np.uint8)
        return bytes(letters[group[keep]])

    def as_json(self) -> str:
        """Its alphabet, the letters in a group, and the mapping."""
        return described(
            vocabulary=self.name,
            alphabet=self.alphabet,
            k=self.k,
            mapped=self.mapped,
            size=self.size,
        )


def _ranges(
    starts: NDArray[np.int64], counts: NDArray[np.int64], step: int = 1
) -> NDArray[np.int64]:
    """`start, start + step, ...`, `count` of them, for each start and count, in one array."""
    import numpy as np

    offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + step * offsets
