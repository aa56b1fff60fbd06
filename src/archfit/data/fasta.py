"""FASTA records and FASTQ reads, a document each: their letters, and groups of k as tokens."""

from __future__ import annotations

import itertools
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from archfit.data import streams
from archfit.data.sources import DataSettings, KindHandler, each_file, looks
from archfit.data.streams import Blocks, DocumentBlock, Facts, Ledger, SourceFile
from archfit.data.vocabulary import Ids, Vocabulary
from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import LARGEST_VOCAB
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.lazy_numpy import NDArray

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
NO_NUCLEOTIDES = frozenset("EFILPQ")  # amino acids whose letters are no IUPAC codes of bases
_LETTERS = (string.ascii_uppercase + "*-").encode()  # `*` ends a translation, `-` is a gap
_BLANKS = b"\r\n\t "
_SEQUENCE = rb">[^\n]*\n[A-Za-z*\-\n\r]+"  # a header and a line of letters
_READ = rb"@[^\n]*\n[A-Za-z.\-\r]+\n\+"
_UNKNOWN = bytes.maketrans(b".", b"N")  # older machines write a point for a base they did not see


def fasta_blocks(file: SourceFile, _: DataSettings, ledger: Ledger) -> Blocks:
    """The sequences of one file; lower case (soft-masked) letters count as upper case."""
    in_body = False  # the header of the record that goes on is already read
    for block in streams.documents_between(_from_first_mark(file, ledger), b">", is_line=False):
        letters = []
        for part, ends in block.ends():
            header, body = (b"", part) if in_body else part.partition(b"\n")[::2]
            record = f"{file.name}, record {header[:40].decode('latin-1').strip()!r},"
            letters.append(sequence_letters(body, file.name if in_body else record))
            in_body = not ends and (in_body or b"\n" in part)
        yield DocumentBlock(letters, complete=block.complete)


def _from_first_mark(file: SourceFile, ledger: Ledger) -> Iterator[bytes]:
    """The stream without blanks before its first `>`."""
    chunks = file.unpacked(ledger)
    head = next((start for chunk in chunks if (start := chunk.lstrip(_BLANKS))), b"")
    if head and not head.startswith(b">"):
        raise refusal("no-fasta-header", name=file.name, start=repr(head[:20].decode("latin-1")))
    yield head
    yield from chunks


def fastq_blocks(file: SourceFile, _: DataSettings, ledger: Ledger) -> Blocks:
    """The sequences of one file of reads: the second of every four lines."""
    reads = enumerate(itertools.zip_longest(*[file.lines(ledger)] * 4), start=1)
    letters = (_letters_of_read(lines, f"{file.name}, read {number},") for number, lines in reads)
    return streams.blocks_of(letters)


def _letters_of_read(lines: Sequence[bytes | None], where: str) -> bytes:
    """The letters of a read of four lines: name, sequence, plus, qualities."""
    for line, mark in zip(lines, (b"@", b"", b"+", b""), strict=True):
        if line is None:
            raise ValueError(f"{where} ends in the middle; copy the file again")
        if not line.startswith(mark):
            found = repr(line[:20].decode("latin-1"))
            raise refusal("no-fastq-mark", where=where, line=found, mark=mark.decode())
    _, sequence, _, qualities = (line or b"" for line in lines)
    letters = sequence_letters(sequence.translate(_UNKNOWN), where)
    if len(qualities.strip()) != len(letters):
        sizes = {"letters": len(letters), "qualities": len(qualities.strip())}
        raise refusal("fastq-qualities", where=where, **sizes)
    return letters


def sequence_letters(body: bytes, where: str) -> bytes:
    """The letters in upper case without blanks; what is no letter of a sequence is refused."""
    letters = body.upper().translate(None, _BLANKS)
    if strange := letters.translate(None, _LETTERS):
        raise refusal("no-sequence-letter", where=where, letter=repr(chr(strange[0])))
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
        raise refusal("unusual-letters", found=found, usual=usual, unknown=unknown)
    seen = {letter for letter in counts if letter in usual} | {unknown}
    return "".join(sorted(seen)), {letter: unknown for letter in strange if letter != unknown}


@dataclass(frozen=True, kw_only=True, slots=True)
class Kmers(Vocabulary):
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
        base, k, start = len(self.alphabet), self.k, 0
        letters, weights = self._letters(b"".join(block.parts)), base ** np.arange(k)[::-1]
        ids: list[NDArray[np.int64]] = []
        for part, ends in block.ends():
            left, end = start + len(part) // k * k, start + len(part)
            ids += [letters[start:left].reshape(-1, k) @ weights, letters[left:end] + base**k]
            ids += [np.array([self.separator])] * ends
            start = end
        return np.concatenate(ids).astype(np.uint32)

    def _letters(self, content: bytes) -> NDArray[np.int64]:
        """Places in the alphabet."""
        table = np.full(256, -1, np.int64)
        for letter, read_as in ({each: each for each in self.alphabet} | self.mapped).items():
            table[ord(letter)] = self.alphabet.index(read_as)
        letters = table[np.frombuffer(content, np.uint8)]
        if letters.size and letters.min() < 0:
            strange = repr(chr(content[int(letters.argmin())]))
            raise refusal("foreign-letter", letter=strange, alphabet=self.alphabet)
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


def kmer_vocabulary(settings: DataSettings, contents: Iterable[bytes], _: Facts) -> Kmers:
    """Groups of as many of the letters that occur as the settings say."""
    counts: Counter[str] = Counter()
    for content in contents:
        found = enumerate(np.bincount(np.frombuffer(content, np.uint8)).tolist())
        counts.update({chr(code): count for code, count in found if count})
    alphabet, mapped = sequence_alphabet(counts, settings.unusual)
    letters, k = len(alphabet), settings.kmer
    needed = letters**k + (letters if k > 1 else 0) + 1
    sizes = {"letters": letters, "needed": needed, "most": LARGEST_VOCAB}
    refuse_if(needed > LARGEST_VOCAB, "too-many-kmers", k, **sizes)
    rows = settings.rows(needed, "k-mers" if k > 1 else "letters")
    return Kmers(alphabet=alphabet, k=k, mapped=mapped, size=rows)


FASTA = KindHandler(
    looks("sequences in FASTA", _SEQUENCE), each_file(fasta_blocks), kmer_vocabulary, (Kmers,)
)
FASTQ = KindHandler(
    looks("reads in FASTQ", _READ), each_file(fastq_blocks), kmer_vocabulary, (Kmers,)
)
