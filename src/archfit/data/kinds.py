"""The kinds of data, an entry each, recognised by their content and read as documents; and any
tokenizer.json, read back as a vocabulary, or only asked how many rows its table needs.

What other rooms may know of a kind stands in `archfit.spec.data_kinds`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from archfit.data import vocabulary
from archfit.data.fasta import FASTA, FASTQ
from archfit.data.images import IMAGES
from archfit.data.series import SERIES, TOKENS
from archfit.data.sources import DataSettings, KindHandler, find_files
from archfit.data.streams import Blocks, Facts, InputFile, Ledger, refused
from archfit.data.text import ABC, BYTES, TEXT, dataset_documents
from archfit.data.vocabulary import Vocabulary, token_ids, tokenizer_object, tokenizer_text
from archfit.spec.errors import refuse_if

LOOKED_AT = 1 << 16  # bytes
MOST_UNPACKED = 1 << 26
Report: TypeAlias = Callable[[str, int, int], None]  # stage, bytes read, bytes in all (0: unknown)

# In the order in which content is recognised: the first that knows the first bytes.
HANDLERS: dict[str, KindHandler] = {
    "images": IMAGES,
    "fasta": FASTA,
    "fastq": FASTQ,
    "abc": ABC,
    "tokens": TOKENS,
    "bytes": BYTES,
    "series": SERIES,
    "text": TEXT,
}


class DetectedKind(NamedTuple):
    """What a source looks like, and the kind that would read it."""

    like: str
    kind: str


def detect_kind(source: str) -> DetectedKind | None:
    """What the first file of a source is by its content; None if there is none to open."""
    try:
        file = find_files(source, "bytes")[0]
        start = next(file.unpacked(Ledger(MOST_UNPACKED)), b"")[:LOOKED_AT]
    except (OSError, ValueError):
        return None
    looks = ((handler.look(start), kind) for kind, handler in HANDLERS.items() if start)
    return next((DetectedKind(like, kind) for like, kind in looks if like), None)


class Documents(NamedTuple):
    """The documents of a data set, as often as needed."""

    source: str
    settings: DataSettings
    facts: Facts  # of the whole data set, known after the first block
    blocks: Callable[[str], Blocks]  # all documents once more; told the word for why


@dataclass
class SourceDocuments:
    """Those of a source, which must be the same each time that it is read."""

    source: str
    settings: DataSettings
    facts: Facts
    report: Report
    files: dict[str, InputFile] = field(default_factory=dict)  # known after the first reading

    def blocks(self, stage: str) -> Blocks:
        """All documents once more; refused if a file is no longer what it was."""
        found, done = find_files(self.source, self.settings.kind), 0
        total = sum(file.path.stat().st_size for file in found if not file.is_dataset)

        def progress(count: int) -> None:
            nonlocal done
            done += count
            self.report(stage, done, total)  # 0 in all: not known beforehand

        ledger = Ledger(self.settings.max_bytes, progress, self.facts)
        self.report(stage, 0, total)
        yield from HANDLERS[self.settings.kind].read(found, self.settings, ledger)
        changed = dict(self.files.items() ^ ledger.files.items()) if self.files else {}
        refuse_if(bool(changed), "changed-while-read", what=next(iter(changed), None))
        self.files = ledger.files

    def hashed(self) -> dict[str, InputFile]:
        """Its files with their hashes, read but not unpacked."""
        ledger = Ledger(self.settings.max_bytes)
        for file in find_files(self.source, self.settings.kind):
            read = dataset_documents(file, self.settings, ledger) if file.is_dataset else None
            for _ in read or file.chunks(ledger):
                pass
        return ledger.files


def read_vocabulary(text: str, name: str) -> Vocabulary:
    """The vocabulary that a tokenizer.json describes: Hugging Face's for BPE, our own otherwise."""
    document = tokenizer_object(text.encode(), name)
    if document.pop("format", None) != vocabulary.FORMAT:
        return vocabulary.read_bpe(text, name)
    versions = {"version": document.pop("version", None), "known": vocabulary.FORMAT_VERSION}
    refuse_if(versions["version"] != versions["known"], "other-vocabulary", name=name, **versions)
    with refused((KeyError, TypeError), "incomplete-vocabulary", name=name):
        wanted = document.pop("vocabulary")
        known = {each.name: each for kind in HANDLERS.values() for each in kind.vocabularies}
        if wanted not in known:
            raise KeyError(f"unknown vocabulary {wanted!r}")
        fields = {key: _as_tuples(value) for key, value in document.items()}
        return known[wanted](**fields)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def tokenizer_rows(path: Path) -> int:
    """Rows of the table for a Hugging Face tokenizer.json of any model, or one of ours."""
    text = tokenizer_text(path)
    document = tokenizer_object(text.encode(), path.name)
    if document.get("format") == vocabulary.FORMAT:
        return read_vocabulary(text, path.name).size
    rows = max(token_ids(document), default=-1) + 1
    refuse_if(rows < 2, "no-model-vocab", name=path.name)
    return rows
