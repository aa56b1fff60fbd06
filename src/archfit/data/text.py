"""Text and bytes as documents: plain files, JSON lines, Parquet, and Hugging Face data sets.

`hf:NAME[:CONFIG][:SPLIT]` means the rows of a data set in a folder or in the local cache.
"""

import codecs
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from archfit.data import streams
from archfit.data.sources import HUGGING_FACE, DataSettings, KindHandler, each_file
from archfit.data.streams import Blocks, Facts, Ledger, SourceFile, optional_module, refused
from archfit.data.vocabulary import Bpe, Bytes, Characters, code_points, read_bpe, tokenizer_text
from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import BYTE_VOCAB
from archfit.spec.errors import refusal, refuse_if

DEFAULT_FIELD = "text"
ROWS_AT_ONCE = 1024
_SPLITS = ("train", "test", "validation", "valid", "dev", "heldout")
_TUNE = re.compile(rb"^X:\s*\d+", re.MULTILINE)


def binary_look(start: bytes) -> str:
    """A word for content that is no text, by its first bytes."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return "bytes that are no UTF-8 text"
    return "binary data" if b"\0" in start else ""


def abc_look(start: bytes) -> str:
    """A word for music in ABC notation, by its first bytes."""
    return "tunes in ABC notation" if _TUNE.search(start) and b"\nK:" in start else ""


def text_blocks(file: SourceFile, settings: DataSettings, ledger: Ledger) -> Blocks:
    """The documents of one file: rows of a table, or what lies between lines.

    The lines read `<|doc|>`, those of ABC are blank, unless told otherwise.
    """
    tables = {".jsonl": _json_documents, ".parquet": _parquet_documents}
    rows = dataset_documents if file.is_dataset else tables.get(file.suffix)
    if settings.kind == "text" and rows:
        return streams.blocks_of(rows(file, settings, ledger))
    chunks = file.unpacked(ledger)
    if settings.kind != "bytes":
        chunks = (text.encode() for text in decoded(chunks, file.name, settings.errors))
    usual = "" if settings.kind == "abc" else streams.DOCUMENT_LINE
    mark = usual if settings.separator is None else settings.separator
    return streams.documents_between(chunks, mark.encode())


def decoded(chunks: Iterable[bytes], name: str, errors: str) -> Iterator[str]:
    """The text of a stream of UTF-8, without a byte order mark at its start.

    What is not UTF-8 is refused or replaced by U+FFFD.
    """
    decoder, before = codecs.getincrementaldecoder("utf-8-sig")(errors), 0
    for chunk in itertools.chain(filter(None, chunks), [b""]):
        if not before and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise ValueError(f"{name} is UTF-16; write it as UTF-8, for example by iconv -t utf-8")
        try:
            yield decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as problem:
            offset = before + len(chunk) - len(problem.object) + problem.start
            byte = f"0x{problem.object[problem.start]:02x}"
            raise refusal("no-utf8", name=name, byte=byte, offset=offset) from problem
        before += len(chunk)


def _json_documents(file: SourceFile, settings: DataSettings, ledger: Ledger) -> Iterator[bytes]:
    field = settings.field or DEFAULT_FIELD
    for number, line in enumerate(file.lines(ledger), start=1):
        if not line.strip():
            continue
        where = f"{file.name} line {number}"
        text = "".join(decoded([line], where, settings.errors))
        with refused((ValueError, RecursionError), "unreadable-line", where=where):
            row = json.loads(text)
        if not isinstance(row, dict) or field not in row:
            keys = ", ".join(map(repr, row)) if isinstance(row, dict) else type(row).__name__
            raise ValueError(f"{where} has no field {field!r} but {keys}; choose one by --field")
        if document := _encoded(row[field], where, settings.errors):
            yield document


def _encoded(value: object, where: str, errors: str) -> bytes:
    """A text value as UTF-8; a lone surrogate has none."""
    if not isinstance(value, str):
        raise refusal("no-text", where=where, kind=type(value).__name__)
    try:
        return value.encode()
    except UnicodeEncodeError as problem:
        if errors == "replace":
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        raise refusal("no-unicode", where=where, reason=problem.reason) from problem


def _parquet_documents(file: SourceFile, settings: DataSettings, ledger: Ledger) -> Iterator[bytes]:
    pyarrow = optional_module("pyarrow", f"{file.name} needs the pyarrow")
    parquet = optional_module("pyarrow.parquet", f"{file.name} needs the pyarrow")
    file.hash_into(ledger)
    with refused(pyarrow.ArrowException, "unreadable-parquet", name=file.name):
        table = parquet.ParquetFile(file.path)
        field = _column(table.schema_arrow.names, file.name, settings)
        for batch in table.iter_batches(batch_size=ROWS_AT_ONCE, columns=[field]):
            yield from _column_documents(batch.column(0).to_pylist(), file.name, settings, ledger)


def _column(names: list[str], where: str, settings: DataSettings) -> str:
    """The column of text to read, if it is there."""
    field = settings.field or DEFAULT_FIELD
    there = ", ".join(map(repr, names))
    refuse_if(field not in names, "no-column", where=where, field=repr(field), there=there)
    return field


def _column_documents(
    values: Iterable[object], name: str, settings: DataSettings, ledger: Ledger
) -> Iterator[bytes]:
    """The values of a text column that hold something, counted against the limit."""
    for value in values:
        document = b"" if value is None else _encoded(value, name, settings.errors)
        ledger.spend(len(document), name)
        if document:
            yield document


def dataset_documents(file: SourceFile, settings: DataSettings, ledger: Ledger) -> Iterator[bytes]:
    """The text field of each row of a data set; the ledger gets a hash over all of them."""
    dataset, name = _load_dataset(file.name)
    field = _column(dataset.column_names, name, settings)
    digest, size = hashlib.sha256(), 0
    for rows in dataset.select_columns([field]).iter(batch_size=ROWS_AT_ONCE):
        for document in _column_documents(rows[field], name, settings, ledger):
            digest.update(len(document).to_bytes(8, "little") + document)
            size += len(document)
            ledger.advance(len(document))
            yield document
    ledger.add(streams.InputFile(name, size, digest.hexdigest()))


def _load_dataset(source: str) -> tuple[Any, str]:
    """The `datasets.Dataset` that `source` names and a name for it without the folders above.

    One word after the name is a split if it looks like one, else a configuration.
    """
    # Offline unless the user says otherwise; the library reads this when first imported.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    datasets = optional_module("datasets", f"{source} needs the datasets")
    name, config, split, *more = [*source.removeprefix(HUGGING_FACE).split(":"), "", ""]
    refuse_if(not name or len(more) > 2, "no-dataset-name", source=repr(source))
    if config in _SPLITS and not split:
        config, split = "", config
    split = split or "train"
    with refused(Exception, "dataset-offline", name=repr(name)):  # a zoo
        if Path(name, "dataset_info.json").exists() or Path(name, "dataset_dict.json").exists():
            rows = datasets.load_from_disk(name)
        else:
            rows = datasets.load_dataset(name, config or None)
    if isinstance(rows, datasets.DatasetDict):
        splits = {"split": repr(split), "there": ", ".join(rows)}
        refuse_if(split not in rows, "no-split", source=source, **splits)
        rows = rows[split]
    return rows, ":".join((HUGGING_FACE + Path(name).name, *filter(None, (config, split))))


def text_vocabulary(
    settings: DataSettings, contents: Iterable[bytes], _facts: Facts
) -> Bpe | Bytes | None:
    """A given tokenizer, or bytes, or None where a BPE is trained when the split is known."""
    for _ in contents:  # is read all the same, and bytes are what they are
        pass
    if settings.tokenizer is None:
        is_bytes = settings.kind == "bytes" or settings.vocab in (None, BYTE_VOCAB)
        return Bytes(size=settings.rows(BYTE_VOCAB, "bytes")) if is_bytes else None
    return read_bpe(tokenizer_text(settings.tokenizer), settings.tokenizer.name)


def character_vocabulary(settings: DataSettings, contents: Iterable[bytes], _: Facts) -> Characters:
    """All characters that occur in UTF-8 text, by code point."""
    seen = np.zeros(0x110000, bool)
    for content in contents:
        seen[code_points(content.decode())] = True
    alphabet = "".join(map(chr, seen.nonzero()[0]))
    return Characters(alphabet=alphabet, size=settings.rows(len(alphabet) + 1, "characters"))


TEXT = KindHandler(lambda _: "text", each_file(text_blocks), text_vocabulary, (Bytes,))
BYTES = KindHandler(binary_look, each_file(text_blocks), text_vocabulary, (Bytes,))
ABC = KindHandler(abc_look, each_file(text_blocks), character_vocabulary, (Characters,))
