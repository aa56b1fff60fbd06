from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data import streams
from archfit.data.fasta import (
    AMINO_ACIDS,
    fasta_blocks,
    kmer_vocabulary,
    sequence_alphabet,
    usual_letters,
)
from archfit.data.sources import DataSettings
from archfit.data.streams import Ledger, SourceFile

Writer = Callable[[str, bytes], SourceFile]
FASTA = DataSettings(kind="fasta")


def sequences(file: SourceFile, ledger: Ledger) -> list[bytes]:
    found, begun = [], b""
    for block in fasta_blocks(file, FASTA, ledger):
        for part, ends in block.ends():
            begun += part
            if ends:
                found.append(begun)
                begun = b""
    return [document for document in found if document]


def test_letters_come_without_headers_case_and_line_ends(
    source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("a.fa", b"\n>one >not two\r\nacgt\r\nNN\r\n>empty\n>two\nAC GT\n")
    assert sequences(file, ledger) == [b"ACGTNN", b"ACGT"]


def test_a_genome_longer_than_a_block_arrives_whole(
    source_file: Writer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HELD_PART_BYTES", 500)
    monkeypatch.setattr("archfit.data.streams.BLOCK_BYTES", 300)
    lines = [b"ACGTTGCA" * 8] * 100
    file = source_file("a.fa", b">g\n" + b"\n".join(lines) + b"\n>h\nAC\n")
    assert sequences(file, ledger) == [b"".join(lines), b"AC"]


@pytest.mark.parametrize("length", [500, 900, 5000])
def test_a_header_longer_than_a_block_is_no_sequence(
    length: int, source_file: Writer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HELD_PART_BYTES", 500)
    monkeypatch.setattr("archfit.data.streams.BLOCK_BYTES", 300)
    header = b">" + b"A" * length
    file = source_file("a.fa", b"\n".join([header, b"CG", header, header, b"T" * 2000, header]))
    assert sequences(file, ledger) == [b"CG", b"T" * 2000]


def test_a_file_without_headers_is_told_what_to_do(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(
        ValueError, match=r"starts with 'ACGT', not with a FASTA header; put a line"
    ):
        list(fasta_blocks(source_file("a.fa", b"ACGT"), FASTA, ledger))


def test_a_strange_sign_is_named_with_its_record(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"record 'two', holds '7', which is no sequence letter"):
        list(fasta_blocks(source_file("a.fa", b">one\nAC\n>two\nAC7\n"), FASTA, ledger))


DNA = {"A": 500, "C": 400, "G": 400, "T": 500, "N": 3, "R": 1}
PROTEIN = dict.fromkeys("ACDEFGHIKLMNPQRSTVWY", 100) | {"B": 2, "U": 1}


@pytest.mark.parametrize(
    ("counts", "unusual", "alphabet", "mapped"),
    [
        (DNA, "keep", "ACGNRT", {}),
        (DNA, "map", "ACGNT", {"R": "N"}),
        (PROTEIN, "map", "ACDEFGHIKLMNPQRSTVWXY", {"B": "X", "U": "X"}),
        ({"A": 9, "U": 9, "C": 1}, "refuse", "ACU", {}),
    ],
)
def test_unusual_letters_are_kept_or_mapped_by_choice(
    counts: dict[str, int], unusual: str, alphabet: str, mapped: dict[str, str]
) -> None:
    assert sequence_alphabet(counts, unusual) == (alphabet, mapped)


def test_unusual_letters_are_refused_by_choice() -> None:
    with pytest.raises(ValueError, match=r"hold N \(3 times\), R \(1 times\), not only ACGT; use"):
        sequence_alphabet(DNA, "refuse")


@pytest.mark.parametrize(("others", "usual"), [(10, "ACGT"), (11, AMINO_ACIDS)])
def test_nine_letters_in_ten_make_nucleotides(others: int, usual: str) -> None:
    assert usual_letters({"A": 50, "N": 40, "L": others}) == usual


@given(st.lists(st.text("ACGT")))
def test_letters_are_counted(texts: list[str]) -> None:
    made = kmer_vocabulary(DataSettings(kind="fasta"), (text.encode() for text in texts), {})
    assert made.alphabet == "".join(sorted(set("".join(texts))))


def test_letters_that_are_refused_are_counted() -> None:
    settings = DataSettings(kind="fasta", unusual="refuse")
    with pytest.raises(ValueError, match=r"hold N \(3 times\), R \(1 times\), not only ACGT"):
        kmer_vocabulary(settings, [b"ACGTNN", b"NRAAAAAAACGT" * 1, b"ACGT" * 9], {})
