"""Byte-level BPE by Hugging Face tokenizers: trained on an iterator, encoded in bounded batches."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from archfit.data.streams import DOCUMENT_LINE, DocumentBlock, character_cut, refused
from archfit.data.vocabulary import Ids, Vocabulary, split_ids
from archfit.spec.data_kinds import LARGEST_VOCAB

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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
class Bpe(Vocabulary):
    """A tokenizer of the tokenizers library and the id that ends a document."""

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

    @property
    def is_plain(self) -> bool:
        """Whether decoding its tokens is nothing but joining their bytes."""
        return self.cuttable and type(self.tokenizer.decoder).__name__ == "ByteLevel"

    def encode(self, block: DocumentBlock) -> Ids:
        """The ids of each document, encoded in pieces on all cores, and the separator after it."""
        import numpy as np

        most = PIECE_BYTES if self.cuttable else sys.maxsize
        parts = [([*pieces_of(part, most)], ends) for part, ends in block.ends()]
        pieces = [piece.decode() for part, _ in parts for piece in part]
        what = "the tokenizer cannot encode this text"
        with refused(Exception, what, "use another --tokenizer"):  # the library raises a bare one
            encoded = iter(self.tokenizer.encode_batch_fast(pieces, add_special_tokens=False))
        ids = [np.empty(0, np.uint32)]
        for part, ends in parts:
            ids += [np.array(next(encoded).ids, np.uint32) for _ in part]
            if ends:
                ids.append(np.array([self.separator], np.uint32))
        return np.concatenate(ids)

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
    alphabet, size = pre_tokenizers.ByteLevel.alphabet(), vocab - 1
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return _with_separator(tokenizer)


def read_bpe(text: str, name: str) -> Bpe:
    """The tokenizer that Hugging Face's tokenizer.json describes, a separator added if needed."""
    from tokenizers import Tokenizer

    what = f"{name} is not a tokenizer.json of Hugging Face"
    with refused(Exception, what, "give another file"):  # the library raises bare Exception
        tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    vocabulary = _with_separator(tokenizer)
    if vocabulary.size > LARGEST_VOCAB:
        rule = f"has {vocabulary.size} tokens, more than {LARGEST_VOCAB}"
        raise ValueError(f"{name} {rule}; use a smaller one")
    if vocabulary.decode(vocabulary.encode(DocumentBlock([_SAMPLE], complete=True))) != [_SAMPLE]:
        rule = "does not give text back as it was (words, blanks or case are lost or added)"
        way_out = "use a byte-level tokenizer without a prefix space, or train one by --vocab"
        raise ValueError(f"{name} {rule}; {way_out}")
    return vocabulary


def _with_separator(tokenizer: Tokenizer) -> Bpe:
    """`tokenizer` with its separator found or added; text that looks like one stays text."""
    from tokenizers import AddedToken

    added = tokenizer.get_added_tokens_decoder().values()
    special = {token.content for token in added if token.special}
    known = [word for word in _SEPARATORS if word in special]
    if not known and tokenizer.token_to_id(DOCUMENT_LINE) is not None:
        rule = f"has {DOCUMENT_LINE} as an ordinary token, which text may hold too"
        raise ValueError(f"the tokenizer {rule}; mark it as special, or take it out")
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
    steps = [step for step in steps if step.get("type") == "ByteLevel"]
    plain = [step for step in steps if not step.get("add_prefix_space")]
    return tokenizer.normalizer is None and any(step.get("use_regex", True) for step in plain)


def pieces_of(part: bytes, most: int) -> Iterator[bytes]:
    """`part` in pieces of about `most` bytes, cut between words."""
    start = 0
    while len(part) - start > most:
        end = word_cut(part, start + most, start)
        yield part[start:end]
        start = end
    if start < len(part):
        yield part[start:]


def word_cut(text: bytes, limit: int, start: int = 0) -> int:
    """The last gap between words shortly before `limit`; between characters if there is none."""
    for low in (max(start, limit - 256), max(start, limit - LOOK_BACK_BYTES)):
        gaps = [gap.end() for gap in _WORD_GAP.finditer(text, low, limit + 2)]
        if gaps and gaps[-1] <= limit:
            return gaps[-1]
    return character_cut(text, limit)
