"""FASTA files: one document a record, its letters, and groups of k of them as tokens."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from archfit.data.sources import DataSettings, KindHandler, each_file
from archfit.data.streams import Blocks, ByteSeparator, DocumentBlock, Ledger, SourceFile
from archfit.data.vocabulary import Ids, UnitVocabulary, VocabularyBuilder
from archfit.spec.data_kinds import LARGEST_VOCAB
from archfit.spec.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from archfit.spec import lazy_numpy as np

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
_LETTERS = (string.ascii_uppercase + "*-").encode()  # `*` ends a translation, `-` is a gap
_UPPER = bytes.maketrans(string.ascii_lowercase.encode(), string.ascii_uppercase.encode())
_BLANKS = b"\r\n\t "
_SEQUENCE = re.compile(rb">[^\n]*\n[A-Za-z*\-\n\r]+")


def fasta_look(start: bytes) -> str:
    """A word for sequences, by the first bytes: a header and a line of letters."""
    return "sequences in FASTA" if _SEQUENCE.match(start) else ""


def fasta_blocks(file: SourceFile, _: DataSettings, ledger: Ledger) -> Blocks:
    """The sequences of one file; lower case (soft-masked) letters count as upper case."""
    in_body = False  # the header of the record that goes on is already read
    for block in ByteSeparator(between=b"\n>").documents(_after_first_mark(file, ledger)):
        letters = []
        for part, ends in block.ends():
            letters.append(_letters(part, file.name, in_body=in_body))
            in_body = not ends and (in_body or b"\n" in part)
        yield DocumentBlock(letters, complete=block.complete)


def _after_first_mark(file: SourceFile, ledger: Ledger) -> Iterator[bytes]:
    """The stream behind its first `>`."""
    chunks = file.unpacked(ledger)
    head = next((start for chunk in chunks if (start := chunk.lstrip(_BLANKS))), b"")
    if head and not head.startswith(b">"):
        rule = f"starts with {head[:20].decode('latin-1')!r}, not with a FASTA header"
        way_out = "put a line >name before each sequence, or use --kind abc for bare characters"
        raise ValueError(f"{file.name} {rule}; {way_out}")
    yield head[1:]
    yield from chunks


def _letters(record: bytes, name: str, *, in_body: bool) -> bytes:
    """The sequence in a part of a record, which starts in its header unless `in_body`."""
    where, body = name, record
    if not in_body:
        header, _, body = record.partition(b"\n")
        where = f"{name}, record {header[:40].decode('latin-1').strip()!r},"
    return sequence_letters(body, where)


def sequence_letters(body: bytes, where: str) -> bytes:
    """The letters in upper case without blanks; what is no letter of a sequence is refused."""
    letters = body.translate(_UPPER, _BLANKS)
    if strange := letters.translate(None, _LETTERS):
        rule = f"holds {chr(strange[0])!r}, which is no sequence letter"
        raise ValueError(f"{where} {rule}; only A-Z, * and - may stand between headers")
    return letters


def usual_letters(counts: dict[str, int]) -> str:
    """The letters one expects: ACGT (RNA: ACGU) if nine in ten are such or N, else amino acids."""
    nucleotides = sum(counts.get(letter, 0) for letter in "ACGTUN")
    if nucleotides < 0.9 * sum(counts.values()):
        return AMINO_ACIDS
    return "ACGU" if counts.get("U", 0) > counts.get("T", 0) else "ACGT"


def sequence_alphabet(counts: dict[str, int], unusual: str) -> tuple[str, dict[str, str]]:
    """The alphabet for letters seen `counts` times, and what becomes of unusual ones.

    keep: each is a symbol of its own; map: all become N (nucleotides) or X (proteins);
    refuse: there may be none.
    """
    usual = usual_letters(counts)
    strange = "".join(sorted(letter for letter in counts if letter not in usual))
    if unusual == "keep" or not strange:
        return "".join(sorted(counts)), {}
    unknown = "X" if usual == AMINO_ACIDS else "N"
    if unusual == "refuse":
        found = ", ".join(f"{letter} ({counts[letter]} times)" for letter in strange)
        way_out = f"use --unusual map, which turns them into {unknown}, or --unusual keep"
        raise ValueError(f"the sequences hold {found}, not only {usual}; {way_out}")
    seen = {letter for letter in counts if letter in usual} | {unknown}
    return "".join(sorted(seen)), {letter: unknown for letter in strange if letter != unknown}


@dataclass(frozen=True, kw_only=True, slots=True)
class Kmers(UnitVocabulary):
    """Groups of `k` letters, single letters for what is left over at the end, and the separator.

    With A letters the ids are A^k groups (the first letter weighs most), then, if k > 1, A single
    letters. `mapped` says which letters are read as another.
    """

    name: ClassVar[str] = "k-mers"
    unit_bytes: ClassVar[int] = 1
    alphabet: str
    k: int
    mapped: dict[str, str] = field(default_factory=dict)
    size: int

    @property
    def separator(self) -> int:
        """The id after groups and single letters."""
        letters = len(self.alphabet)
        return int(letters**self.k) + (letters if self.k > 1 else 0)

    def cut(self, part: bytes, limit: int) -> int:  # noqa: ARG002  # the content does not matter
        """Between groups."""
        return limit - limit % self.k

    def encode(self, block: DocumentBlock) -> Ids:
        """One id for each k letters, then the letters left over, then the separator."""
        letters = self._letters(b"".join(block.parts))
        lengths = np.array([len(part) for part in block.parts], np.int64)
        starts = np.cumsum(lengths) - lengths
        groups, singles = lengths // self.k, lengths % self.k
        sizes = groups + singles + 1
        sizes[-1] -= not block.complete
        places = np.cumsum(sizes) - sizes
        ids = np.full(int(sizes.sum()), self.separator, np.uint32)
        base = len(self.alphabet)
        weights = base ** np.arange(self.k)[::-1]
        first = _ranges(starts, groups, step=self.k)
        ids[_ranges(places, groups)] = letters[first[:, None] + np.arange(self.k)] @ weights
        left = _ranges(starts + groups * self.k, singles)
        ids[_ranges(places + groups, singles)] = letters[left] + base**self.k
        return ids

    def _letters(self, content: bytes) -> NDArray[np.int64]:
        """Places in the alphabet."""
        table = np.full(256, -1, np.int64)
        for letter, read_as in ({each: each for each in self.alphabet} | self.mapped).items():
            table[ord(letter)] = self.alphabet.index(read_as)
        letters = table[np.frombuffer(content, np.uint8)]
        if letters.size and letters.min() < 0:
            rule = f"is not in the alphabet {self.alphabet}"
            strange = chr(content[int(letters.argmin())])
            raise ValueError(f"letter {strange!r} {rule}; prepare again with it")
        return letters

    def content_of(self, ids: Ids) -> bytes:
        """The letters (after mapping)."""
        base, column = len(self.alphabet), ids.astype(np.int64)[:, None]
        single = column >= base**self.k
        group = column // base ** np.arange(self.k)[::-1] % base
        group = np.where(single, column - base**self.k, group)
        keep = ~single | (np.arange(self.k) == 0)
        letters = np.frombuffer(self.alphabet.encode(), np.uint8)
        return bytes(letters[group[keep]])


def _ranges(
    starts: NDArray[np.int64], counts: NDArray[np.int64], step: int = 1
) -> NDArray[np.int64]:
    """`start, start + step, ...`, `count` of them, for each start and count, in one array."""
    offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + step * offsets


class KmerVocabularyBuilder(VocabularyBuilder):
    """How often each letter occurs in sequences."""

    def __init__(self, settings: DataSettings) -> None:
        super().__init__(settings)
        self.counts: Counter[str] = Counter()

    def add(self, content: bytes) -> None:
        """Count the letters."""
        found = enumerate(np.bincount(np.frombuffer(content, np.uint8)).tolist())
        self.counts.update({chr(code): count for code, count in found if count})

    def build(self) -> Kmers:
        """Groups of as many of the letters as the settings say."""
        alphabet, mapped = sequence_alphabet(self.counts, self.settings.unusual)
        letters, k = len(alphabet), self.settings.kmer
        needed = letters**k + (letters if k > 1 else 0) + 1
        if needed > LARGEST_VOCAB:
            rule = f"of {letters} letters needs {needed} tokens, more than {LARGEST_VOCAB}"
            raise InvalidValue("kmer", k, rule, "use a smaller one")
        rows = self.rows(needed, "k-mers" if k > 1 else "letters")
        return Kmers(alphabet=alphabet, k=k, mapped=mapped, size=rows)


FASTA = KindHandler(fasta_look, each_file(fasta_blocks), KmerVocabularyBuilder, (Kmers,))
