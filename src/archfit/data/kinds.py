"""The kinds of data, an entry each: how one is recognised, read and given a vocabulary.

What other rooms may know of a kind stands in `archfit.spec.data_kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from archfit.data.fasta import Kmers, KmerVocabularyBuilder, fasta_blocks, fasta_look
from archfit.data.images import (
    Levels,
    Palette,
    PixelVocabularyBuilder,
    image_blocks,
    image_look,
    settled_images,
)
from archfit.data.series import (
    Bins,
    BinVocabularyBuilder,
    series_blocks,
    series_look,
    settled_series,
)
from archfit.data.sources import HUGGING_FACE, DataSettings, find_files
from archfit.data.streams import (
    DocumentBlock,
    InputFile,
    Ledger,
    SourceFile,
    blocks_of,
    changed_error,
    read_and_hash,
    unpacked_chunks,
)
from archfit.data.text import (
    CharacterVocabularyBuilder,
    TextVocabularyBuilder,
    abc_look,
    binary_look,
    byte_blocks,
    character_blocks,
    dataset_documents,
    text_blocks,
)
from archfit.data.token_files import IdVocabularyBuilder, PlainIds, token_blocks
from archfit.data.vocabulary import Bytes, Characters, VocabularyBuilder

if TYPE_CHECKING:
    FileReader = Callable[[SourceFile, DataSettings, Ledger], Iterator[DocumentBlock]]
    Report = Callable[[str, int, int], None]  # stage, bytes read, bytes in all (0: not known)

LOOKED_AT = 1 << 16  # bytes
MOST_UNPACKED = 1 << 26
Reader: TypeAlias = Callable[[Sequence[SourceFile], DataSettings, Ledger], Iterator[DocumentBlock]]
Settle: TypeAlias = Callable[[DataSettings, Callable[[], dict[str, int]]], DataSettings]


def _as_given(settings: DataSettings, _: Callable[[], dict[str, int]]) -> DataSettings:
    return settings


def _each(reader: FileReader) -> Reader:
    """A reader of many files, each read alone."""

    def read(
        files: Sequence[SourceFile], settings: DataSettings, ledger: Ledger
    ) -> Iterator[DocumentBlock]:
        for file in files:
            yield from reader(file, settings, ledger)

    return read


@dataclass(frozen=True, kw_only=True, slots=True)
class KindHandler:
    """What is done with data of one kind."""

    look: Callable[[bytes], str]  # a word for it where the first bytes are such; else empty
    read: Reader
    builder: Callable[[DataSettings], VocabularyBuilder]
    vocabularies: tuple[Any, ...]  # classes that tokenizer.json may name
    settle: Settle = _as_given  # settings that leave nothing open, by the facts of the first block


# In the order in which content is recognised: the first that knows the first bytes.
HANDLERS: dict[str, KindHandler] = {
    "images": KindHandler(
        look=image_look,
        read=image_blocks,
        builder=PixelVocabularyBuilder,
        vocabularies=(Levels, Palette),
        settle=settled_images,
    ),
    "fasta": KindHandler(
        look=fasta_look,
        read=_each(fasta_blocks),
        builder=KmerVocabularyBuilder,
        vocabularies=(Kmers,),
    ),
    "abc": KindHandler(
        look=abc_look,
        read=_each(character_blocks),
        builder=CharacterVocabularyBuilder,
        vocabularies=(Characters,),
    ),
    "tokens": KindHandler(
        look=lambda _: "",
        read=_each(token_blocks),
        builder=IdVocabularyBuilder,
        vocabularies=(PlainIds,),
    ),
    "bytes": KindHandler(
        look=binary_look,
        read=_each(byte_blocks),
        builder=TextVocabularyBuilder,
        vocabularies=(Bytes,),
    ),
    "series": KindHandler(
        look=series_look,
        read=_each(series_blocks),
        builder=BinVocabularyBuilder,
        vocabularies=(Bins,),
        settle=settled_series,
    ),
    "text": KindHandler(
        look=lambda _: "text",
        read=_each(text_blocks),
        builder=TextVocabularyBuilder,
        vocabularies=(Bytes,),
    ),
}


@dataclass(frozen=True, slots=True)
class DetectedKind:
    """What a source looks like, and the kind that would read it."""

    like: str
    kind: str


def detect_kind(source: str) -> DetectedKind | None:
    """What the first file of a source is by its content; None if there is none to open."""
    try:
        file = find_files(source, "bytes")[0]
        start = next(unpacked_chunks(file, Ledger(MOST_UNPACKED)), b"")[:LOOKED_AT]
    except (OSError, ValueError):
        return None
    looks = ((handler.look(start), kind) for kind, handler in HANDLERS.items() if start)
    return next((DetectedKind(like, kind) for like, kind in looks if like), None)


def read_blocks(source: str, settings: DataSettings, ledger: Ledger) -> Iterator[DocumentBlock]:
    """The documents of `source`; the ledger learns which files they came from."""
    if not source.startswith(HUGGING_FACE):
        return HANDLERS[settings.kind].read(find_files(source, settings.kind), settings, ledger)
    if settings.kind != "text":
        raise ValueError(f"{source} gives text; use --kind text, not {settings.kind}")
    return blocks_of(dataset_documents(source, settings, ledger))


def hash_inputs(source: str, settings: DataSettings) -> dict[str, InputFile]:
    """The files of `source` with their hashes, read but not unpacked."""
    ledger = Ledger(settings.max_bytes)
    if source.startswith(HUGGING_FACE):
        for _ in read_blocks(source, settings, ledger):
            pass
        return ledger.files
    for file in find_files(source, settings.kind):
        read_and_hash(file, ledger)
    return ledger.files


class Documents(Protocol):
    """Where the documents of a data set come from."""

    @property
    def source(self) -> str:
        """What people call it."""

    @property
    def settings(self) -> DataSettings:
        """How it is turned into tokens."""

    @property
    def facts(self) -> dict[str, int]:
        """Rows, columns and channels of images; known after the first block."""

    def blocks(self, stage: str) -> Iterator[DocumentBlock]:
        """All documents once more."""


class SourceDocuments:
    """The documents of a source, as often as needed; the source must be the same each time."""

    def __init__(self, source: str, settings: DataSettings, report: Report) -> None:
        self.source, self.settings, self.report = source, settings, report
        self.files: dict[str, InputFile] = {}  # known after the first complete reading
        self.facts: dict[str, int] = {}

    def blocks(self, stage: str) -> Iterator[DocumentBlock]:
        """All documents once more; refused if a file is no longer what it was."""
        total, done = 0, 0  # the size of a Hugging Face data set is not known beforehand
        if not self.source.startswith(HUGGING_FACE):
            files = find_files(self.source, self.settings.kind)
            total = sum(file.path.stat().st_size for file in files)

        def progress(count: int) -> None:
            nonlocal done
            done += count
            self.report(stage, done, total)

        ledger = Ledger(self.settings.max_bytes, progress)
        self.report(stage, 0, total)
        for block in read_blocks(self.source, self.settings, ledger):
            self.facts = ledger.facts
            yield block
        for name in ledger.files.keys() | self.files.keys():
            if self.files and self.files.get(name) != ledger.files.get(name):
                raise changed_error(name)
        self.files = ledger.files

    def first_facts(self) -> dict[str, int]:
        """The facts that the first block shows; it is read if no block was yet."""
        if not self.facts:
            next(self.blocks("reading"), None)
        return self.facts
