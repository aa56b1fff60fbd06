"""Plain text, JSON lines, Parquet and Hugging Face data sets as documents."""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING

from archfit.data.blocks import Block, LineSeparator, blocks_of, character_cut, split_documents
from archfit.data.settings import DOCUMENT_LINE
from archfit.data.unpack import lines_of, read_and_hash, unpacked_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from archfit.data.settings import Settings
    from archfit.data.unpack import Ledger, SourceFile

DEFAULT_FIELD = "text"
ROWS_AT_ONCE = 1024


def text_blocks(file: SourceFile, settings: Settings, ledger: Ledger) -> Iterator[Block]:
    """The documents of one file of kind text, by its ending."""
    if file.suffix == ".jsonl":
        return blocks_of(_json_documents(file, settings, ledger))
    if file.suffix == ".parquet":
        return blocks_of(_parquet_documents(file, settings, ledger))
    chunks = checked_utf8(unpacked_chunks(file, ledger), file.name, settings.errors)
    return split_at_lines(chunks, _line(settings, DOCUMENT_LINE))


def character_blocks(file: SourceFile, settings: Settings, ledger: Ledger) -> Iterator[Block]:
    """The documents of one file of character data: between blank lines, unless told otherwise."""
    chunks = checked_utf8(unpacked_chunks(file, ledger), file.name, settings.errors)
    return split_at_lines(chunks, _line(settings, ""))


def byte_blocks(file: SourceFile, settings: Settings, ledger: Ledger) -> Iterator[Block]:
    """The documents of any file: between lines `<|doc|>`, or else the file is one document."""
    return split_at_lines(unpacked_chunks(file, ledger), _line(settings, DOCUMENT_LINE))


def _line(settings: Settings, default: str) -> str:
    return default if settings.separator is None else settings.separator


def split_at_lines(chunks: Iterable[bytes], line: str) -> Iterator[Block]:
    """The documents between lines that read `line`; an empty one means blank lines."""
    mark = line.encode()
    return split_documents(_ended(chunks, b"\n" + mark) if mark else chunks, LineSeparator(mark))


def _ended(chunks: Iterable[bytes], mark: bytes) -> Iterator[bytes]:
    """The stream, with a line end if its last line is the mark, so that it is found like others."""
    last = b""
    for chunk in chunks:
        yield chunk
        last = (last + chunk)[-len(mark) :]
    if last == mark:
        yield b"\n"


def checked_utf8(chunks: Iterable[bytes], name: str, errors: str) -> Iterator[bytes]:
    """The same text in whole characters, without a byte order mark at its start.

    What is not UTF-8 is refused or replaced by U+FFFD.
    """
    rest, offset = b"", 0
    for chunk in chunks:
        text = rest + chunk
        if not offset and text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise ValueError(f"{name} is UTF-16; write it as UTF-8, for example by iconv -t utf-8")
        cut = _whole_characters(text)
        valid = _valid(text[:cut], name, offset, errors)
        yield valid if offset else valid.removeprefix(codecs.BOM_UTF8)
        rest, offset = text[cut:], offset + cut
    if rest:
        yield _valid(rest, name, offset, errors)


def _whole_characters(text: bytes) -> int:
    """Length without a last character that may go on in the next chunk."""
    start = character_cut(text, len(text) - 1) if text else 0
    lead = text[start] if text else 0
    needed = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    return len(text) if start + needed <= len(text) else start


def _valid(text: bytes, name: str, offset: int, errors: str) -> bytes:
    try:
        text.decode()
    except UnicodeDecodeError as problem:
        if errors == "replace":
            return text.decode(errors="replace").encode()
        raise ValueError(
            f"{name} is not UTF-8: byte 0x{text[problem.start]:02x} at offset "
            f"{offset + problem.start}; use --errors replace, or --kind bytes"
        ) from problem
    return text


def _json_documents(file: SourceFile, settings: Settings, ledger: Ledger) -> Iterator[bytes]:
    field = settings.field or DEFAULT_FIELD
    for number, line in enumerate(lines_of(file, ledger), start=1):
        if not line.strip():
            continue
        where = f"{file.name} line {number}"
        text = _valid(line, where, 0, settings.errors)
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise ValueError(
                f"{where} is not JSON ({problem}); each line must be an object"
            ) from problem
        if not isinstance(row, dict) or field not in row:
            keys = ", ".join(map(repr, row)) if isinstance(row, dict) else type(row).__name__
            raise ValueError(f"{where} has no field {field!r} but {keys}; choose one by --field")
        if document := _encoded(row[field], where, settings.errors):
            yield document


def _encoded(value: object, where: str, errors: str) -> bytes:
    """A text value as UTF-8; a lone surrogate has none."""
    if not isinstance(value, str):
        raise ValueError(
            f"{where} holds {type(value).__name__}, not text; choose a text field by --field"
        )
    try:
        return value.encode()
    except UnicodeEncodeError as problem:
        if errors == "replace":
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        raise ValueError(
            f"{where} is not valid Unicode ({problem.reason}); use --errors replace"
        ) from problem


def _parquet_documents(file: SourceFile, settings: Settings, ledger: Ledger) -> Iterator[bytes]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as problem:
        raise ValueError(
            f"{file.name} needs the pyarrow package; run pip install 'archfit[data]'"
        ) from problem
    field = settings.field or DEFAULT_FIELD
    read_and_hash(file, ledger)
    try:
        table = parquet.ParquetFile(file.path)
        if field not in table.schema_arrow.names:
            names = ", ".join(map(repr, table.schema_arrow.names))
            raise ValueError(
                f"{file.name} has no column {field!r} but {names}; choose one by --field"
            )
        for batch in table.iter_batches(batch_size=ROWS_AT_ONCE, columns=[field]):
            yield from column_documents(batch.column(0).to_pylist(), file.name, settings, ledger)
    except pyarrow.ArrowException as problem:
        raise ValueError(
            f"{file.name} is not readable Parquet ({problem}); write it again"
        ) from problem


def column_documents(
    values: Iterable[object], name: str, settings: Settings, ledger: Ledger
) -> Iterator[bytes]:
    """The values of a text column that hold something, counted against the limit."""
    for value in values:
        if value is None:
            continue
        document = _encoded(value, name, settings.errors)
        ledger.spend(len(document), name)
        if document:
            yield document
