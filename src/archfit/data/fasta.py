"""FASTA files: one document a record, its letters without header, line ends and case."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from archfit.data.blocks import Block, Separator, split_documents
from archfit.data.unpack import unpacked_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from archfit.data.settings import Settings
    from archfit.data.unpack import Ledger, SourceFile

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
_LETTERS = (string.ascii_uppercase + "*-").encode()  # `*` ends a translation, `-` is a gap
_UPPER = bytes.maketrans(string.ascii_lowercase.encode(), string.ascii_uppercase.encode())
_BLANKS = b"\r\n\t "


def fasta_blocks(file: SourceFile, settings: Settings, ledger: Ledger) -> Iterator[Block]:  # noqa: ARG001  # readers are called alike
    """The sequences of one file; lower case (soft-masked) letters count as upper case."""
    in_body = False  # the header of the record that goes on is already read
    for block in split_documents(_after_first_mark(file, ledger), Separator(between=b"\n>")):
        *ended, last = block.parts
        letters = []
        for part in ended:
            letters.append(_letters(part, file.name, in_body=in_body))
            in_body = False
        letters.append(_letters(last, file.name, in_body=in_body))
        in_body = not block.complete and (in_body or b"\n" in last)
        yield Block(letters, complete=block.complete)


def _after_first_mark(file: SourceFile, ledger: Ledger) -> Iterator[bytes]:
    """The stream behind its first `>`."""
    chunks = unpacked_chunks(file, ledger)
    head = b""
    for chunk in chunks:
        head = (head + chunk).lstrip(_BLANKS)
        if head:
            break
    if head and not head.startswith(b">"):
        start = head[:20].decode("latin-1")
        raise ValueError(
            f"{file.name} starts with {start!r}, not with a FASTA header; put a line >name before "
            "each sequence, or use --kind abc for bare characters"
        )
    yield head[1:]
    yield from chunks


def _letters(record: bytes, name: str, *, in_body: bool) -> bytes:
    """The sequence in a part of a record, which starts in its header unless `in_body`."""
    if in_body:
        return _checked(record, name)
    header, _, body = record.partition(b"\n")
    return _checked(body, f"{name}, record {header[:40].decode('latin-1').strip()!r},")


def _checked(body: bytes, where: str) -> bytes:
    letters = body.translate(_UPPER, _BLANKS)
    if strange := letters.translate(None, _LETTERS):
        raise ValueError(
            f"{where} holds {chr(strange[0])!r}, which is no sequence letter; "
            "only A-Z, * and - may stand between headers"
        )
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
        raise ValueError(
            f"the sequences hold {found}, not only {usual}; use --unusual map, which turns them "
            f"into {unknown}, or --unusual keep"
        )
    seen = {letter for letter in counts if letter in usual} | {unknown}
    return "".join(sorted(seen)), {letter: unknown for letter in strange if letter != unknown}
