"""The vocabularies in which the documents of a prepared data set can be had.

Text, bytes and ABC: bytes, or BPE of any larger size. Sequences: groups of k letters. Images,
series and tokens: only what they have, since their rounding cannot be undone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from archfit.data.settings import BYTE_VOCAB, LARGEST_KMER, LARGEST_VOCAB, Settings
from archfit.data.vocabulary import Kmers
from archfit.spec.vocabularies import bpe_vocab_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from archfit.data.prepared import PreparedData

TEXTS = ("text", "bytes", "abc")  # kinds whose content is bytes that a BPE can merge
USUAL_KMERS = (1, 2, 3)
MOST_KMER_ROWS = 1 << 16
OCCURRENCES = 50  # of a k-mer on average; a row that is rarer is hardly trained


@dataclass(frozen=True, slots=True)
class AsGiven:
    """The vocabulary that the data has, whatever it is."""

    label: ClassVar[str] = "as given"


@dataclass(frozen=True, slots=True)
class InBytes:
    """256 bytes and the separator."""

    label: ClassVar[str] = "bytes"

    @property
    def settings(self) -> Settings:
        """What prepares it."""
        return Settings(kind="text", vocab=BYTE_VOCAB)


@dataclass(frozen=True, kw_only=True, slots=True)
class InBpe:
    """Byte-level BPE of `vocab` tokens."""

    vocab: int

    def __post_init__(self) -> None:
        if not BYTE_VOCAB < self.vocab <= LARGEST_VOCAB:
            raise ValueError(
                f"vocab={self.vocab} is not in {BYTE_VOCAB + 1}..{LARGEST_VOCAB}, the sizes of a "
                f"BPE; for {BYTE_VOCAB} use bytes"
            )

    @property
    def label(self) -> str:
        """What tells it from its siblings."""
        return f"bpe-{self.vocab}"

    @property
    def settings(self) -> Settings:
        """What prepares it."""
        return Settings(kind="text", vocab=self.vocab)


@dataclass(frozen=True, kw_only=True, slots=True)
class InKmers:
    """Groups of k letters."""

    k: int

    def __post_init__(self) -> None:
        if not 1 <= self.k <= LARGEST_KMER:
            raise ValueError(f"k={self.k} is not in 1..{LARGEST_KMER} letters; use one that is")

    @property
    def label(self) -> str:
        """What tells it from its siblings."""
        return f"kmer-{self.k}"

    @property
    def settings(self) -> Settings:
        """What prepares it: all letters are kept, since unusual ones were dealt with before."""
        return Settings(kind="fasta", kmer=self.k)


Tokenisation: TypeAlias = AsGiven | InBytes | InBpe | InKmers


def given_tokenisation(data: PreparedData) -> Tokenisation:
    """What the data has; `AsGiven` for what nobody else would ask for: padding, a foreign BPE."""
    asked = data.description.get("settings")
    vocab = asked.get("vocab") if isinstance(asked, dict) else None
    match data.description["vocabulary"]:
        case "bytes" if data.vocab == BYTE_VOCAB:
            return InBytes()
        case "bpe" if isinstance(vocab, int) and vocab > BYTE_VOCAB:
            return InBpe(vocab=vocab)
        case "k-mers" if vocab is None:
            return InKmers(k=_kmers(data).k)
    return AsGiven()


def possible_vocabularies(data: PreparedData, sizes: Sequence[int]) -> tuple[Tokenisation, ...]:
    """The vocabularies of about these sizes that the data can have, each once.

    Sequences: 1-, 2- and 3-mers up to the largest size, and the given one in any case.
    """
    kind = data.description["kind"]
    if kind in TEXTS:
        fitting = [size for size in dict.fromkeys(sizes) if BYTE_VOCAB <= size <= LARGEST_VOCAB]
        return tuple(InBytes() if size == BYTE_VOCAB else InBpe(vocab=size) for size in fitting)
    given = given_tokenisation(data)
    if kind != "fasta":
        return (given,)
    letters, largest = len(_kmers(data).alphabet), max(sizes, default=0)
    groups = {InKmers(k=k) for k in USUAL_KMERS if letters**k <= largest}
    kmers = {one for one in (*groups, given) if isinstance(one, InKmers)}
    ordered = tuple(sorted(kmers, key=lambda one: one.k))
    return ordered if given in kmers else (given, *ordered)


def larger_vocabularies(data: PreparedData, at_least: int) -> tuple[Tokenisation, ...]:
    """A vocabulary of rank `at_least` that the data could have in place of its own, if any.

    BPE: the size that plans propose too. k-mers: the smallest k that has as many groups, if it
    needs at most 2^16 rows and each occurs 50 times in training on average.
    """
    kind = data.description["kind"]
    if kind in TEXTS:
        vocab = bpe_vocab_for(at_least)
        return (InBpe(vocab=vocab),) if data.vocab < vocab <= LARGEST_VOCAB else ()
    if kind != "fasta":
        return ()
    own = _kmers(data)
    for k in range(own.k + 1, LARGEST_KMER + 1):
        longer = InKmers(k=k)
        most = min(MOST_KMER_ROWS, _training_bytes(data) // k // OCCURRENCES)
        if expected_vocab(data, longer) > most:
            return ()
        if len(own.alphabet) ** k >= at_least:
            return (longer,)
    return ()


def expected_vocab(data: PreparedData, wanted: Tokenisation) -> int:
    """Rows that `wanted` will need, before it is made; a BPE of little text may stay smaller."""
    match wanted:
        case InBytes():
            return BYTE_VOCAB
        case InBpe(vocab=vocab):
            return vocab
        case InKmers(k=k):
            return replace(_kmers(data), k=k).separator + 1
    return data.vocab


def settings_for(data: PreparedData, wanted: InBytes | InBpe | InKmers) -> Settings:
    """What prepares `wanted` from this data, if it can be had."""
    kind = data.description["kind"]
    is_possible = kind == "fasta" if isinstance(wanted, InKmers) else kind in TEXTS
    if not is_possible:
        raise ValueError(
            f"data of kind {kind} cannot be had as {wanted.label}; text, bytes and abc can be "
            "bytes or a BPE, fasta can be k-mers, and anything can stay as given"
        )
    if isinstance(wanted, InBytes) and kind == "bytes":
        return replace(wanted.settings, kind="bytes")  # it need not be UTF-8
    return wanted.settings


def _kmers(data: PreparedData) -> Kmers:
    vocabulary = data.vocabulary()
    if not isinstance(vocabulary, Kmers):
        raise ValueError(
            f"{str(data.folder)!r} says fasta but holds {vocabulary.name}; prepare it again"
        )
    return vocabulary


def _training_bytes(data: PreparedData) -> int:
    train = data.description["train"]
    assert isinstance(train, dict)  # checked when it was opened
    return int(train["bytes"])
