"""How content becomes token ids and back: what every vocabulary can do; bytes, characters, BPE.

Each ends a document by a separator token, the id after its last ordinary one. `size` counts all
rows an embedding table needs; it may be padded beyond the ids in use. `decode` gives the content
of the documents in a stream of ids (which may start inside one).
"""

from __future__ import annotations

import abc
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from archfit.data.streams import DOCUMENT_LINE, DocumentBlock, character_cut, refused
from archfit.spec import lazy_numpy as np
from archfit.spec.codec import parse_object
from archfit.spec.data_kinds import LARGEST_VOCAB
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.files import LARGEST_TOKENIZER, read_bounded
from archfit.spec.lazy_numpy import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Ids: TypeAlias = "NDArray[np.integer]"
FORMAT = "archfit-vocabulary"
FORMAT_VERSION = 1
MOST_MEMORY, MOST_SECONDS = 4 << 30, 60  # for a tokenizer of others, to load and encode a page
_REFUSED_ITSELF = 3
_TRIAL = f"""
import contextlib, resource, sys
for limit, most in zip((resource.RLIMIT_AS, resource.RLIMIT_CPU), map(int, sys.argv[1:])):
    with contextlib.suppress(ValueError):  # a stricter one is set already
        resource.setrlimit(limit, (most, most))
from tokenizers import Tokenizer
try:
    tokenizer = Tokenizer.from_str(sys.stdin.buffer.read().decode())
    tokenizer.decode(tokenizer.encode("Two words,  two blanks 42\\n" * 2000).ids)
except Exception:
    sys.exit({_REFUSED_ITSELF})
"""
MOST_TOKENIZER_PARTS = 1 << 22  # brackets and commas: four for each token and merge of the largest
WORDS = 0  # in place of the size of a unit: the content is text
PIECE_BYTES = 1 << 16  # long documents are cut so that all cores have work and memory stays small
LOOK_BACK_BYTES = 1 << 12  # no gap between words so far before a limit: not a text of ASCII words
_SEPARATORS = (DOCUMENT_LINE, "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[SEP]")
# A tokenizer that does not give this back loses something of other texts too.
_SAMPLE = "Two words,  two  blanks;\r\n\ta tab, 42 «quotes», naïve café, 漢字 \U0001f600\n".encode()
# Between a letter and the line end, or the space before another word, that follows: GPT-2's pattern
# and those descended from it end a match there, so both sides are encoded as if together.
_WORD_GAP = re.compile(rb"[A-Za-z](?= [A-Za-z]|\n)")


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
    def content_of(self, ids: Ids) -> bytes:
        """The content of ids, none of which is the separator."""

    def decode(self, ids: Ids) -> list[bytes]:
        """The documents of a stream of ids; the last may be unfinished."""
        if self.separator is None:
            return [self.content_of(ids)]
        *ended, rest = np.split(ids, np.flatnonzero(ids == self.separator) + 1)
        documents = [*(document[:-1] for document in ended), *([rest] if len(rest) else [])]
        return [self.content_of(document) for document in documents]

    def with_ends(self, ids: Ids, block: DocumentBlock, counts: Sequence[int] | None = None) -> Ids:
        """The ids of a block, so many a part, with a separator after each document that ends."""
        if self.separator is None:
            return ids
        units = counts or [len(part) // self.unit_bytes for part in block.parts]
        ends = np.cumsum(units, dtype=np.int64)
        return np.insert(ids, ends if block.complete else ends[:-1], self.separator)

    def hugging_face(self) -> Bpe | None:
        """A tokenizer of Hugging Face with the same ids; None where there is none."""
        return None

    def as_json(self) -> str:
        """The content of tokenizer.json: its name and its fields."""
        values: dict[str, object] = asdict(self)  # type: ignore[call-overload]  # children are
        document = {"format": FORMAT, "version": FORMAT_VERSION, "vocabulary": self.name} | values
        return json.dumps(document, indent=1) + "\n"


class TableVocabulary(Vocabulary):
    """Ids of the values in a table; the one after the last value ends a document."""

    @property
    @abc.abstractmethod
    def values(self) -> NDArray[np.generic]:
        """What each id stands for."""

    @property
    def separator(self) -> int:
        """The id after the last value."""
        return len(self.values)

    def content_of(self, ids: Ids) -> bytes:
        """The values themselves."""
        return self.values[ids].tobytes()


def encode_upper_bits(block: DocumentBlock, bits: int, separator: int) -> Ids:
    """One token a byte, its upper `bits`; shifting is far faster than looking up in a table."""
    joined = b"\0".join([*block.parts, b""] if block.complete else block.parts)
    ids = (np.frombuffer(joined, np.uint8) >> np.uint8(8 - bits)).astype(np.uint16)
    ends = np.cumsum([len(part) + 1 for part in block.parts]) - 1
    ids[ends if block.complete else ends[:-1]] = separator
    return ids


@dataclass(frozen=True, kw_only=True, slots=True)
class Bytes(Vocabulary):
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

    def hugging_face(self) -> Bpe:
        """A byte-level BPE without merges, which writes bytes as GPT-2 does: each as a letter."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers

        written = {*range(33, 127), *range(161, 173), *range(174, 256)}  # as themselves
        others = iter(range(256, 512))  # for the others, in their order
        letters = {chr(b if b in written else next(others)): b for b in range(256)}
        tokenizer = Tokenizer(models.BPE(letters, []))
        steps = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer, tokenizer.decoder = steps, decoders.ByteLevel()
        return _with_separator(tokenizer)


@dataclass(frozen=True, kw_only=True, slots=True)
class Characters(TableVocabulary):
    """The characters of `alphabet` in its order, and the separator."""

    name: ClassVar[str] = "characters"
    alphabet: str
    size: int

    @property
    def values(self) -> NDArray[np.uint32]:
        """Their code points."""
        return code_points(self.alphabet)

    def encode(self, block: DocumentBlock) -> Ids:
        """One id a character."""
        texts = [part.decode() for part in block.parts]
        known, codes = self.values, code_points("".join(texts))
        ids = np.searchsorted(known, codes)
        strange = codes[known[np.minimum(ids, len(known) - 1)] != codes]
        if strange.size:
            raise refusal("foreign-character", letter=repr(chr(strange[0])), count=len(known))
        return self.with_ends(ids, block, [len(text) for text in texts])

    def content_of(self, ids: Ids) -> bytes:
        """The text, in UTF-8."""
        return self.values[ids].tobytes().decode("utf-32-le").encode()


def code_points(text: str) -> NDArray[np.uint32]:
    """The Unicode numbers of the characters of `text`."""
    return np.frombuffer(text.encode("utf-32-le"), "<u4")


@dataclass(frozen=True, slots=True)
class Bpe(Vocabulary):
    """A tokenizer of Hugging Face's tokenizers library and the id that ends a document."""

    tokenizer: Tokenizer
    separator: int
    cuttable: bool  # whether encoding piece by piece is the same as at once
    name: ClassVar[str] = "bpe"

    @property
    def size(self) -> int:
        """All ids up to the largest, added tokens included."""
        return max(self.tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    def cut(self, part: bytes, limit: int) -> int:
        """Between words."""
        return word_cut(part, limit)

    def encode(self, block: DocumentBlock) -> Ids:
        """The ids of each document, encoded in pieces on all cores, and the separator after it."""
        most = PIECE_BYTES if self.cuttable else sys.maxsize
        parts = [([*pieces_of(part, most)], ends) for part, ends in block.ends()]
        pieces = [piece for part, _ in parts for piece in part]
        with refused(Exception, "unencodable-text"):  # the library raises a bare one
            encoded = iter(self.tokenizer.encode_batch_fast(pieces, add_special_tokens=False))
        ids = [np.empty(0, np.uint32)]
        for part, ends in parts:
            ids += [np.array(next(encoded).ids, np.uint32) for _ in part]
            ids += [np.array([self.separator], np.uint32)] * ends
        return np.concatenate(ids)

    def content_of(self, ids: Ids) -> bytes:
        """The text, in UTF-8."""
        text: str = self.tokenizer.decode(ids.tolist(), skip_special_tokens=False)
        return text.encode()

    def hugging_face(self) -> Bpe:
        """It is one."""
        return self

    def as_json(self) -> str:
        """The tokenizer.json of Hugging Face."""
        return self.tokenizer.to_str(pretty=True)


def train_bpe(texts: Iterator[str], vocab: int) -> Bpe:
    """A byte-level BPE of at most `vocab` tokens, the separator among them, learnt from `texts`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet, size = pre_tokenizers.ByteLevel.alphabet(), vocab - 1
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return _with_separator(tokenizer)


def tokenizer_text(path: Path) -> str:
    """The content of a tokenizer.json of anybody, which must be a file of reasonable size."""
    with refused((ValueError, IsADirectoryError), "unreadable-tokenizer", name=path.name):
        return read_bounded(path, LARGEST_TOKENIZER).decode()


def tokenizer_object(content: bytes, name: str) -> dict[str, Any]:
    """The object in a tokenizer.json, whose ids are bounded: a library would make room for all."""
    with refused(ValueError, "no-tokenizer", name=name):
        document = parse_object(content, where="it", most_parts=MOST_TOKENIZER_PARTS)
    if max(ids := token_ids(document), default=0) >= LARGEST_VOCAB or min(ids, default=0) < 0:
        ends = {"least": min(ids), "largest": max(ids), "last": LARGEST_VOCAB - 1}
        raise refusal("ids-over-vocabulary", name=name, **ends)
    return document


def token_ids(document: dict[str, Any]) -> list[int]:
    """Ids of the model, which has a mapping or (Unigram) a list of them, and of added tokens."""
    model, added = document.get("model"), document.get("added_tokens")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    ids = [*vocab.values()] if isinstance(vocab, dict) else []
    ids += [len(vocab) - 1] if isinstance(vocab, list) else []
    tokens = added if isinstance(added, list) else ()
    ids += [token.get("id") for token in tokens if isinstance(token, dict)]
    return [number for number in ids if type(number) is int]


def read_bpe(text: str, name: str) -> Bpe:
    """The tokenizer that Hugging Face's tokenizer.json describes, a separator added if needed."""
    from tokenizers import Tokenizer

    tokenizer_object(text.encode(), name)
    _check_harmless(text, name)
    with refused(Exception, "foreign-tokenizer", name=name):  # the library raises bare Exception
        tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    vocabulary = _with_separator(tokenizer)
    back = vocabulary.decode(vocabulary.encode(DocumentBlock([_SAMPLE], complete=True)))
    refuse_if(back != [_SAMPLE], "lossy-tokenizer", name=name)
    return vocabulary


@cache
def _check_harmless(text: str, name: str) -> None:
    """Refuse a file that makes the library take all memory, hang or die; another process tries it.

    What the library itself refuses is left to the caller, who then hears why.
    """
    words = [sys.executable, "-c", _TRIAL, str(MOST_MEMORY), str(MOST_SECONDS)]
    environment = os.environ | {"TOKENIZERS_PARALLELISM": "false"}  # threads reserve memory
    ended = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        ended = subprocess.run(
            words, input=text.encode(), env=environment, capture_output=True, timeout=MOST_SECONDS
        ).returncode
    limits = {"seconds": MOST_SECONDS, "gigabytes": MOST_MEMORY >> 30}
    refuse_if(ended not in (0, _REFUSED_ITSELF), "harmful-tokenizer", name=name, **limits)


def _with_separator(tokenizer: Tokenizer) -> Bpe:
    """`tokenizer` with its separator found or added; text that looks like one stays text.

    It is cuttable if it is byte-level and splits at words, with no prefix or normaliser.
    """
    from tokenizers import AddedToken

    added = tokenizer.get_added_tokens_decoder().values()
    special = {token.content for token in added if token.special}
    known = next((word for word in _SEPARATORS if word in special), None)
    if known is None:
        is_ordinary = tokenizer.token_to_id(DOCUMENT_LINE) is not None
        refuse_if(is_ordinary, "ordinary-separator", token=DOCUMENT_LINE)
        tokenizer.add_special_tokens([AddedToken(DOCUMENT_LINE, special=True)])
    tokenizer.encode_special_tokens = True
    separator = tokenizer.token_to_id(known or DOCUMENT_LINE)
    assert separator is not None
    described = json.loads(tokenizer.to_str())["pre_tokenizer"] or {}
    steps = described.get("pretokenizers", [described])
    at_words = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    splits = any(step.items() >= at_words.items() for step in steps)
    return Bpe(tokenizer, separator, cuttable=splits and tokenizer.normalizer is None)


def pieces_of(part: bytes, most: int = PIECE_BYTES) -> Iterator[str]:
    """The text of `part` in pieces of about `most` bytes, cut between words."""
    start = 0
    while start < len(part):
        is_last = len(part) - start <= most
        end = len(part) if is_last else word_cut(part, start + most, start)
        yield part[start:end].decode()
        start = end


def word_cut(text: bytes, limit: int, start: int = 0) -> int:
    """The last gap between words shortly before `limit`; between characters if there is none."""
    for low in (max(start, limit - 256), max(start, limit - LOOK_BACK_BYTES)):
        gaps = [gap.end() for gap in _WORD_GAP.finditer(text, low, limit + 2)]
        if gaps and gaps[-1] <= limit:
            return gaps[-1]
    return character_cut(text, limit)
