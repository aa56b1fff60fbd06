"""Reads of a sequencing machine: their letters, and damaged files in one sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from archfit.data.fasta import fastq_blocks
from archfit.data.kinds import detect_kind
from archfit.data.prepare import prepare
from archfit.data.sources import DataSettings
from archfit.data.streams import Ledger, SourceFile

Writer = Callable[[str, bytes], SourceFile]
FASTQ = DataSettings(kind="fastq")
READS = b"@one\nacgt\n+\n@@@@\n@two length=3\r\nA.N\r\n+two\r\nIII\r\n"  # a quality may be @


def sequences(file: SourceFile, ledger: Ledger) -> list[bytes]:
    return [part for block in fastq_blocks(file, FASTQ, ledger) for part in block.parts]


def test_a_read_is_its_letters_and_an_unseen_base_is_n(source_file: Writer, ledger: Ledger) -> None:
    assert sequences(source_file("a.fastq", READS), ledger) == [b"ACGT", b"ANN"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b">one\nACGT\n", "has '>one' where a line begins with @"),
        (b"@one\nACGT\nACGT\nIIII\n", "has 'ACGT' where a line begins with \\+"),
        (b"@one\nACGT\n+\nIII\n", "has 4 letters and 3 qualities"),
        (b"@one\nAC?T\n+\nIIII\n", "which is no sequence letter"),
        (b"@one\nACGT\n+\n", "read 1, ends in the middle; copy the file again"),
    ],
)
def test_a_damaged_file_is_refused(
    content: bytes, sentence: str, source_file: Writer, ledger: Ledger
) -> None:
    with pytest.raises(ValueError, match=sentence):
        sequences(source_file("a.fastq", content), ledger)


def test_reads_are_recognised_and_prepared_by_their_suffix(tmp_path: Path) -> None:
    source = tmp_path / "reads.fq"
    letters = [
        f"{number:012b}".translate({48: "ACGT"[number % 4], 49: "G"}) for number in range(400)
    ]
    source.write_text("".join(f"@{read}\n{read}\n+\n{'I' * len(read)}\n" for read in letters))
    detected = detect_kind(str(source))
    assert detected is not None
    assert (detected.kind, detected.like) == ("fastq", "reads in FASTQ")
    data = prepare(str(source), tmp_path / "out", FASTQ).data
    assert data.description["kind"] == "fastq"
    assert data.vocab == 5  # A, C, G, T and the separator
