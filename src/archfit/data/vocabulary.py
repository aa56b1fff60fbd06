"""How content becomes token ids and back: what every vocabulary can do, bytes and characters.

Each ends a document by a separator token, the id after its last ordinary one. `size` counts all
rows an embedding table needs; it may be padded beyond the ids in use. `decode` gives the content
of the documents in a stream of ids (which may start inside one).
"""

from __future__ import annotations

import abc
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from archfit.data.streams import DocumentBlock, character_cut
from archfit.spec.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archfit.data.sources import DataSettings
else:
    from archfit.spec import lazy_numpy as np

Ids: TypeAlias = "NDArray[np.integer]"
FORMAT = "archfit-vocabulary"
FORMAT_VERSION = 1
WORDS = 0  # in place of the size of a unit: the content is text


class Vocabulary(abc.ABC):
    """What every vocabulary can do."""

    name: ClassVar[str]  # the word for it in data.json
    unit_bytes: ClassVar[int] = WORDS  # of one unit of content: a pixel, a value, a letter
    if TYPE_CHECKING:  # fields of some children, properties of others

        @property
        def size(self) -> int:
            """Rows an embedding table needs."""

        @property
        def separator(self) -> int | None:
            """The id that ends a document; None where the ids came without one."""

    def cut(self, part: bytes, limit: int) -> int:
        """The last place up to `limit` where `part` may be cut and both sides encoded alone."""
        if self.unit_bytes == WORDS:
            return character_cut(part, limit)
        return limit - limit % self.unit_bytes

    @abc.abstractmethod
    def encode(self, block: DocumentBlock) -> Ids:
        """The ids of a block, a separator after each document that ends in it."""

    @abc.abstractmethod
    def decode(self, ids: Ids) -> list[bytes]:
        """The documents of a stream of ids; the last may be unfinished."""

    def as_json(self) -> str:
        """The content of tokenizer.json: its name and its fields."""
        values: dict[str, object] = dataclasses.asdict(self)  # type: ignore[call-overload]  # children are
        document = {"format": FORMAT, "version": FORMAT_VERSION, "vocabulary": self.name} | values
        return json.dumps(document, indent=1) + "\n"


class UnitVocabulary(Vocabulary):
    """One whose documents are decoded one by one: all but BPE."""

    def with_ends(self, ids: Ids, block: DocumentBlock) -> Ids:
        """The ids of a block's units, a separator after each document that ends in it."""
        counts = [len(part) // self.unit_bytes for part in block.parts]
        return with_separators(ids, counts, block, self.separator)

    def decode(self, ids: Ids) -> list[bytes]:
        """The documents of a stream of ids; the last may be unfinished."""
        return [self.content_of(document) for document in split_ids(ids, self.separator)]

    @abc.abstractmethod
    def content_of(self, ids: Ids) -> bytes:
        """The content of ids, none of which is the separator."""


class VocabularyBuilder(abc.ABC):
    """Looks at all content, a block at a time, remembers little, and chooses a vocabulary."""

    def __init__(self, settings: DataSettings) -> None:
        self.settings = settings

    def add(self, content: bytes) -> None:  # noqa: B027  # bytes are what they are
        """Look at the content of a block; here nothing depends on it."""

    @abc.abstractmethod
    def build(self) -> Vocabulary | None:
        """The vocabulary, or None where a BPE has to be trained first."""

    def rows(self, needed: int, what: str) -> int:
        """Rows of the table: as many as needed, or as many as asked for if that is enough."""
        vocab = self.settings.vocab
        if vocab is not None and vocab < needed:
            rule = f"is smaller than the alphabet: the {what} of this source (and a separator)"
            way_out = f"use {needed} or more, or leave it out"
            raise InvalidValue("vocab", vocab, rule, way_out)
        return needed if vocab is None else vocab


def split_ids(ids: Ids, separator: int | None) -> list[Ids]:
    """The ids of each document, without separators."""
    if separator is None:
        return [ids]
    ends = [*np.flatnonzero(ids == separator).tolist(), len(ids)]
    starts = [0, *(end + 1 for end in ends[:-1])]
    documents = [ids[start:end] for start, end in zip(starts, ends, strict=True)]
    return documents if len(documents[-1]) else documents[:-1]


def with_separators(
    ids: Ids, counts: Sequence[int], block: DocumentBlock, separator: int | None
) -> Ids:
    """`ids` with a separator after each document that ends in the block of `counts` ids a part."""
    if separator is None:
        return ids
    ends = np.cumsum(np.asarray(counts, np.int64))
    return np.insert(ids, ends if block.complete else ends[:-1], separator)


def encode_upper_bits(block: DocumentBlock, bits: int, separator: int) -> Ids:
    """One token a byte, its upper `bits`; shifting is far faster than looking up in a table."""
    joined = b"\0".join([*block.parts, b""] if block.complete else block.parts)
    ids = (np.frombuffer(joined, np.uint8) >> np.uint8(8 - bits)).astype(np.uint16)
    ends = np.cumsum([len(part) + 1 for part in block.parts]) - 1
    ids[ends if block.complete else ends[:-1]] = separator
    return ids


@dataclass(frozen=True, kw_only=True, slots=True)
class Bytes(UnitVocabulary):
    """The 256 bytes by their value, and the separator."""

    name: ClassVar[str] = "bytes"
    size: int = 257
    separator: int = 256

    def encode(self, block: DocumentBlock) -> Ids:
        """One id a byte."""
        return encode_upper_bits(block, 8, self.separator)

    def content_of(self, ids: Ids) -> bytes:
        """The bytes themselves."""
        return ids.astype("u1").tobytes()


@dataclass(frozen=True, kw_only=True, slots=True)
class Characters(UnitVocabulary):
    """The characters of `alphabet` in its order, and the separator."""

    name: ClassVar[str] = "characters"
    alphabet: str
    size: int

    @property
    def separator(self) -> int:
        """The id after the last character."""
        return len(self.alphabet)

    def encode(self, block: DocumentBlock) -> Ids:
        """One id a character."""
        texts = [part.decode() for part in block.parts]
        known, codes = code_points(self.alphabet), code_points("".join(texts))
        ids = np.searchsorted(known, codes)
        strange = codes[known[np.minimum(ids, len(known) - 1)] != codes]
        if strange.size:
            what = f"character {chr(strange[0])!r} is not in the alphabet of {len(known)}"
            raise ValueError(f"{what}; prepare again from a source that holds it")
        return with_separators(ids, [len(text) for text in texts], block, self.separator)

    def content_of(self, ids: Ids) -> bytes:
        """The text, in UTF-8."""
        return code_points(self.alphabet)[ids].tobytes().decode("utf-32-le").encode()


def code_points(text: str) -> NDArray[np.uint32]:
    """The Unicode numbers of the characters of `text`."""
    return np.frombuffer(text.encode("utf-32-le"), "<u4")
