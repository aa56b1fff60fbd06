"""The documents of a prepared data set in another vocabulary, each on the side where it was.

Text, bytes and ABC can be had as bytes, or as BPE of any larger size; sequences as groups of k
letters; images, series and tokens only as they are, since their rounding cannot be undone.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from archfit.data.fasta import Kmers
from archfit.data.kinds import Documents
from archfit.data.prepare import find_or_write, work_hash, write_data_set
from archfit.data.prepared import SIDES, PreparedData
from archfit.data.sources import DataSettings, check_range
from archfit.data.streams import Blocks, DocumentBlock, InputFile
from archfit.data.vocabulary import Bpe, Bytes, Ids, Vocabulary
from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import BYTE_VOCAB, LARGEST_KMER, LARGEST_VOCAB
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.lazy_numpy import NDArray
from archfit.spec.parts import bpe_vocab_for

USUAL_KMERS = (1, 2, 3)
MOST_KMER_ROWS = 1 << 16
OCCURRENCES = 50  # of a k-mer on average; a row that is rarer is hardly trained
IDS_AT_ONCE = 1 << 18  # a 24-mer takes some hundred bytes to decode


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokenisation:
    """What documents are to be had in; where nothing is said, in the vocabulary that they have."""

    vocab: int | None = None  # rows of a byte-level BPE; the smallest is bytes alone
    k: int | None = None  # letters in a group

    def __post_init__(self) -> None:
        assert None in (self.vocab, self.k)
        check_range(BYTE_VOCAB, LARGEST_VOCAB, "a BPE has so many tokens", vocab=self.vocab)
        check_range(1, LARGEST_KMER, f"use 1 to {LARGEST_KMER} letters", k=self.k)

    @property
    def label(self) -> str:
        """What tells it from its siblings."""
        if self.vocab is None:
            return "as given" if self.k is None else f"kmer-{self.k}"
        return "bytes" if self.vocab == BYTE_VOCAB else f"bpe-{self.vocab}"


AS_GIVEN = Tokenisation()
BYTES = Tokenisation(vocab=BYTE_VOCAB)


def given_tokenisation(data: PreparedData) -> Tokenisation:
    """What the data has; `AS_GIVEN` for what nobody else would ask for: padding, a foreign BPE."""
    asked = data.description.get("settings")
    vocab = asked.get("vocab") if isinstance(asked, dict) else None
    match data.description["vocabulary"]:
        case "bytes" if data.vocab == BYTE_VOCAB:
            return BYTES
        case "bpe" if isinstance(vocab, int) and vocab > BYTE_VOCAB:
            return Tokenisation(vocab=vocab)
        case "k-mers" if vocab is None:
            return Tokenisation(k=_kmers(data).k)
    return AS_GIVEN


def possible_vocabularies(data: PreparedData, sizes: Sequence[int]) -> tuple[Tokenisation, ...]:
    """The vocabularies of about these sizes that the data can have, each once.

    Sequences: 1-, 2- and 3-mers up to the largest size, and the given one in any case.
    """
    if data.units == "bytes":
        fitting = [size for size in dict.fromkeys(sizes) if BYTE_VOCAB <= size <= LARGEST_VOCAB]
        return tuple(Tokenisation(vocab=size) for size in fitting)
    given = given_tokenisation(data)
    if data.units != "letters":
        return (given,)
    letters, largest = len(_kmers(data).alphabet), max(sizes, default=0)
    kmers = (Tokenisation(k=k) for k in USUAL_KMERS if letters**k <= largest)
    return tuple(sorted({*kmers, given}, key=lambda each: each.k or 0))


def larger_vocabularies(data: PreparedData, at_least: int) -> tuple[Tokenisation, ...]:
    """A vocabulary of rank `at_least` that the data could have in place of its own, if any.

    BPE: the size that plans propose too. k-mers: the smallest k that has as many groups, if it
    needs at most 2^16 rows and each occurs 50 times in training on average.
    """
    if data.units == "bytes":
        vocab = bpe_vocab_for(at_least)
        return (Tokenisation(vocab=vocab),) if data.vocab < vocab <= LARGEST_VOCAB else ()
    if data.units != "letters":
        return ()
    given, letters = _kmers(data), data.description["train"]["bytes"]
    for k in range(given.k + 1, LARGEST_KMER + 1):
        most = min(MOST_KMER_ROWS, letters // k // OCCURRENCES)
        if expected_vocab(data, Tokenisation(k=k)) > most:
            return ()
        if len(given.alphabet) ** k >= at_least:
            return (Tokenisation(k=k),)
    return ()


def expected_vocab(data: PreparedData, wanted: Tokenisation) -> int:
    """Rows that `wanted` will need, before it is made; a BPE of little text may stay smaller."""
    if wanted.k is not None:
        return replace(_kmers(data), k=wanted.k).separator + 1
    return data.vocab if wanted.vocab is None else wanted.vocab


def _kmers(data: PreparedData) -> Kmers:
    vocabulary = data.vocabulary()
    if not isinstance(vocabulary, Kmers):
        kinds = {"kind": data.kind, "held": vocabulary.name}
        raise refusal("no-kmers", folder=repr(str(data.folder)), **kinds)
    return vocabulary


def retokenised(data: PreparedData, out: Path, wanted: Tokenisation) -> PreparedData:
    """The same documents as `wanted`, in the folder `out`, made now or found there finished.

    What the data has already is given back as it is, and `out` stays as it is.
    """
    if wanted in (AS_GIVEN, given_tokenisation(data)):
        return data
    is_other = data.units != ("bytes" if wanted.k is None else "letters")
    refuse_if(is_other, "other-units", kind=data.kind, label=wanted.label)
    if wanted.k is not None:  # all letters are kept: unusual ones were dealt with before
        settings = DataSettings(kind="fasta", kmer=wanted.k)
    else:  # bytes that stay bytes need not be UTF-8
        kind = "bytes" if wanted == BYTES and data.kind == "bytes" else "text"
        settings = DataSettings(kind=kind, vocab=wanted.vocab)
    # The hash of the data names its content, so that finished work is known without decoding.
    work = work_hash(settings, [[InputFile("prepared", 0, data.data_hash)]])
    blocks = [partial(_side_blocks, data, side, settings.kind) for side in SIDES]
    sides = [Documents(str(data.folder), settings, {}, each) for each in blocks]

    def write(folder: Path) -> None:
        data.verify()
        kept = ("input", "heldout_input", "image", "documents", "split", "leakage")
        given = {key: data.description[key] for key in kept if key in data.description}
        origin = given | {"made_from": data.data_hash, "work_hash": work}
        write_data_set(folder, sides, lambda: origin)

    return find_or_write(out, work=lambda: work, write=write, overwrite=False).data


def _side_blocks(data: PreparedData, side: str, kind: str, _stage: str) -> Blocks:
    """The documents of one side, decoded as often as needed and never kept.

    They are cut between characters; text is refused if it is not UTF-8.
    """
    ids, vocabulary = data.tokens(side), data.vocabulary()
    decoder, number = codecs.getincrementaldecoder("utf-8")(), 1
    begins, start = _beginnings(vocabulary), 0
    while start < len(ids):
        end = _end(ids, start, vocabulary.separator, begins)
        complete = bool(ids[end - 1] == vocabulary.separator)
        block, start = DocumentBlock(vocabulary.decode(ids[start:end]), complete=complete), end
        for part, ends in block.ends() if kind == "text" else ():
            try:
                decoder.decode(part, final=ends)
            except UnicodeDecodeError as problem:
                byte = f"0x{problem.object[problem.start]:02x}"
                where = {"number": number, "side": side}
                raise refusal("no-utf8-document", byte=byte, **where) from problem
            number += ends
        yield block


def _end(ids: Ids, start: int, separator: int | None, begins: NDArray[np.bool_]) -> int:
    """Where to stop: after a document, or, in one that is very long, where it may be cut."""
    for low in range(start, len(ids) - IDS_AT_ONCE, IDS_AT_ONCE):
        window = ids[low : low + IDS_AT_ONCE]
        ended = np.flatnonzero(window == separator)
        if ended.size:
            return low + int(ended[-1]) + 1
        allowed = np.flatnonzero(begins[window])
        if allowed.size and low + allowed[-1] > start:
            return low + int(allowed[-1])
    return len(ids)


def _beginnings(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Which tokens begin with a whole character: the text before them can be decoded apart.

    A tokenizer that adds or drops blanks at the start of a text has no such token.
    """
    begins = np.ones(vocabulary.size, bool)
    if isinstance(vocabulary, Bytes):
        begins[0x80:0xC0] = False  # they go on with a character of UTF-8
    if isinstance(vocabulary, Bpe):
        begins[:] = False
        known = vocabulary.tokenizer.get_vocab(with_added_tokens=False)
        joins_bytes = type(vocabulary.tokenizer.decoder).__name__ == "ByteLevel"
        for token, number in known.items() if vocabulary.cuttable and joins_bytes else ():
            begins[number] = token[:1].isascii() or token[:1] in "ĠĊ"  # a blank, a line end
    return begins
