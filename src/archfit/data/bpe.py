"""Byte-level BPE by Hugging Face tokenizers: trained on an iterator, encoded in bounded batches."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.data.blocks import Block, character_cut
from archfit.data.settings import DOCUMENT_LINE, LARGEST_VOCAB
from archfit.data.vocabulary import split_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from tokenizers import Encoding, Tokenizer

    from archfit.data.vocabulary import Ids

PIECE_BYTES = 1 << 16  # long documents are cut so that all cores have work and memory stays small
LOOK_BACK_BYTES = 1 << 12  # no gap between words so far before a limit: not a text of ASCII words
TRAINING_BYTES = 128 << 20  # a tokenizer sees at most this much; its table of words stays small
_SEPARATORS = (DOCUMENT_LINE, "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[SEP]")
# A tokenizer that does not give this back loses something of other texts too.
_SAMPLE = "Two words,  two  blanks;\r\n\ta tab, 42 «quotes», naïve café, 漢字 \U0001f600\n".encode()
# Between a letter and the line end, or the space before another word, that follows: GPT-2's pattern
# and those descended from it end a match there, so both sides are encoded as if together.
_WORD_GAP = re.compile(rb"[A-Za-z](?= [A-Za-z]|\n)")


@dataclass(frozen=True, slots=True)
class Bpe:
    """A tokenizer of the tokenizers library and the id that ends a document."""

    tokenizer: Tokenizer
    separator: int
    cuttable: bool  # whether encoding piece by piece is the same as at once
    name: str = "bpe"

    @property
    def size(self) -> int:
        """All ids up to the largest, added tokens included."""
        return max(self.tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    def cut(self, part: bytes, limit: int) -> int:
        """Between words."""
        return word_cut(part, limit)

    def encode(self, block: Block) -> Ids:
        """The ids of each document, encoded in pieces on all cores, and the separator after it."""
        import numpy as np

        pieces: list[str] = []
        counts: list[int] = []  # pieces of each part
        cut = pieces_of if self.cuttable else _uncut
        for part in block.parts:
            before = len(pieces)
            pieces += [piece.decode() for piece in cut(part)]
            counts.append(len(pieces) - before)
        encoded = iter(self._encodings(pieces))
        ids: list[np.ndarray] = []
        for place, count in enumerate(counts):
            ids += [np.array(next(encoded).ids, np.uint32) for _ in range(count)]
            if block.complete or place < len(counts) - 1:
                ids.append(np.array([self.separator], np.uint32))
        return np.concatenate(ids) if ids else np.empty(0, np.uint32)

    def _encodings(self, pieces: list[str]) -> list[Encoding]:
        try:
            return self.tokenizer.encode_batch_fast(pieces, add_special_tokens=False)
        except Exception as problem:  # the library raises bare Exception
            raise ValueError(
                f"the tokenizer cannot encode this text ({problem}); use another --tokenizer"
            ) from problem

    def decode(self, ids: Ids) -> list[bytes]:
        """The text of each document, in UTF-8."""
        documents = [document.tolist() for document in split_ids(ids, self.separator)]
        texts: list[str] = self.tokenizer.decode_batch(documents, skip_special_tokens=False)
        return [text.encode() for text in texts]

    def as_json(self) -> str:
        """The tokenizer.json of Hugging Face."""
        return self.tokenizer.to_str(pretty=True)


def train_bpe(texts: Iterator[str], vocab: int) -> Bpe:
    """A byte-level BPE of at most `vocab` tokens, the separator among them, learnt from `texts`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - 1,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return with_separator(tokenizer)


def read_bpe(text: str, name: str) -> Bpe:
    """The tokenizer that Hugging Face's tokenizer.json describes, a separator added if needed."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as problem:  # the library raises bare Exception
        raise ValueError(f"{name} is not a tokenizer.json of Hugging Face ({problem})") from problem
    tokenizer.no_padding()
    tokenizer.no_truncation()
    vocabulary = with_separator(tokenizer)
    if vocabulary.size > LARGEST_VOCAB:
        raise ValueError(
            f"{name} has {vocabulary.size} tokens, more than {LARGEST_VOCAB}; use a smaller one"
        )
    if vocabulary.decode(vocabulary.encode(Block([_SAMPLE], complete=True))) != [_SAMPLE]:
        raise ValueError(
            f"{name} does not give text back as it was (unknown words, blanks or case are lost or "
            "added); use a byte-level tokenizer without a prefix space, or train one by --vocab"
        )
    return vocabulary


def with_separator(tokenizer: Tokenizer) -> Bpe:
    """`tokenizer` with its separator found or added; text that looks like one stays text."""
    from tokenizers import AddedToken

    special = {one.content for one in tokenizer.get_added_tokens_decoder().values() if one.special}
    known = [word for word in _SEPARATORS if word in special]
    if not known and tokenizer.token_to_id(DOCUMENT_LINE) is not None:
        raise ValueError(
            f"the tokenizer has {DOCUMENT_LINE} as an ordinary token, which text may hold too; "
            "mark it as special, or take it out"
        )
    if not known:
        tokenizer.add_special_tokens([AddedToken(DOCUMENT_LINE, special=True)])
        known = [DOCUMENT_LINE]
    tokenizer.encode_special_tokens = True
    separator = tokenizer.token_to_id(known[0])
    assert separator is not None
    return Bpe(tokenizer, separator, _is_cuttable(tokenizer))


def _is_cuttable(tokenizer: Tokenizer) -> bool:
    """True for byte-level pre-tokenizers that split at words, with no prefix or normaliser."""
    described = json.loads(tokenizer.to_str())["pre_tokenizer"] or {}
    steps = described.get("pretokenizers", [described])
    return tokenizer.normalizer is None and any(
        step.get("type") == "ByteLevel"
        and step.get("use_regex", True)
        and not step.get("add_prefix_space")
        for step in steps
    )


def word_cut(text: bytes, limit: int) -> int:
    """The last gap between words shortly before `limit`; between characters if there is none."""
    return _last_gap(text, 0, limit)


def _uncut(part: bytes) -> list[bytes]:
    return [part] if part else []


def pieces_of(part: bytes) -> Iterator[bytes]:
    """`part` in pieces of about `PIECE_BYTES`, cut between words."""
    start = 0
    while len(part) - start > PIECE_BYTES:
        end = _last_gap(part, start, start + PIECE_BYTES)
        yield part[start:end]
        start = end
    if start < len(part):
        yield part[start:]


def _last_gap(text: bytes, start: int, limit: int) -> int:
    """The last gap between words shortly before `limit`; `limit` or just below if there is none."""
    for low in (max(start, limit - 256), max(start, limit - LOOK_BACK_BYTES)):
        gaps = [gap.end() for gap in _WORD_GAP.finditer(text, low, limit + 2)]
        if gaps and gaps[-1] <= limit:
            return gaps[-1]
    return character_cut(text, limit)
