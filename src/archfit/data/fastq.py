"""FASTQ files: reads of a sequencing machine, one document a read; its qualities are left out."""

import re
from collections.abc import Iterator

from archfit.data.fasta import Kmers, KmerVocabularyBuilder, sequence_letters
from archfit.data.sources import DataSettings, KindHandler, each_file
from archfit.data.streams import Blocks, Ledger, SourceFile, blocks_of

_READ = re.compile(rb"@[^\n]*\n[A-Za-z.\-\r]+\n\+")
_UNKNOWN = bytes.maketrans(b".", b"N")  # older machines write a point for a base they did not see


def fastq_blocks(file: SourceFile, _: DataSettings, ledger: Ledger) -> Blocks:
    """The sequences of one file of reads."""
    return blocks_of(_sequences(file, ledger))


def _sequences(file: SourceFile, ledger: Ledger) -> Iterator[bytes]:
    """The second of every four lines: name, sequence, plus, qualities."""
    letters, lines = b"", 0
    for line in file.lines(ledger):
        read, place = divmod(lines, 4)
        where = f"{file.name}, read {read + 1},"
        mark = {0: b"@", 2: b"+"}.get(place, b"")
        if not line.startswith(mark):
            raise ValueError(
                f"{where} has {line[:20].decode('latin-1')!r} where a line begins with "
                f"{mark.decode()}; a read has four lines: @name, sequence, +, qualities"
            )
        if place == 1:
            letters = sequence_letters(line.translate(_UNKNOWN), where)
            yield letters
        elif place == 3 and len(line.strip()) != len(letters):
            raise ValueError(
                f"{where} has {len(letters)} letters and {len(line.strip())} qualities; each "
                "letter has one, so the file is damaged"
            )
        lines += 1
    if lines % 4:
        raise ValueError(f"{file.name} ends in the middle of a read; copy it again")


FASTQ = KindHandler(
    look=lambda start: "reads in FASTQ" if _READ.match(start) else "",
    read=each_file(fastq_blocks),
    builder=KmerVocabularyBuilder,
    vocabularies=(Kmers,),
)
