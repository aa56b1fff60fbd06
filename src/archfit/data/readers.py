"""One door to every kind of source: its documents, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archfit.data.blocks import blocks_of
from archfit.data.fasta import fasta_blocks
from archfit.data.hugging_face import dataset_documents
from archfit.data.images import ImageReader
from archfit.data.series import series_blocks
from archfit.data.sources import HUGGING_FACE, find_files
from archfit.data.text import byte_blocks, character_blocks, text_blocks
from archfit.data.token_files import token_blocks
from archfit.data.unpack import Ledger, read_and_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from archfit.data.blocks import Block
    from archfit.data.settings import Settings
    from archfit.data.unpack import InputFile

_OF_ONE_FILE = {
    "text": text_blocks,
    "bytes": byte_blocks,
    "fasta": fasta_blocks,
    "series": series_blocks,
    "abc": character_blocks,
    "tokens": token_blocks,
}


def read_blocks(source: str, settings: Settings, ledger: Ledger) -> Iterator[Block]:
    """The documents of `source`; the ledger learns which files they came from."""
    if source.startswith(HUGGING_FACE):
        if settings.kind != "text":
            raise ValueError(f"{source} gives text; use --kind text, not {settings.kind}")
        yield from blocks_of(dataset_documents(source, settings, ledger))
        return
    files = find_files(source, settings)
    if settings.kind == "images":
        yield from ImageReader(files, settings, ledger).blocks()
        return
    for file in files:
        yield from _OF_ONE_FILE[settings.kind](file, settings, ledger)


def source_bytes(source: str, settings: Settings) -> int:
    """The size of the files of `source` on disk; 0 where that is not known beforehand."""
    if source.startswith(HUGGING_FACE):
        return 0
    return sum(file.path.stat().st_size for file in find_files(source, settings))


def hash_inputs(source: str, settings: Settings) -> dict[str, InputFile]:
    """The files of `source` with their hashes, read but not unpacked."""
    ledger = Ledger(settings.max_bytes, lambda _: None)
    if source.startswith(HUGGING_FACE):
        for _ in read_blocks(source, settings, ledger):
            pass
        return ledger.files
    for file in find_files(source, settings):
        read_and_hash(file, ledger)
    return ledger.files
