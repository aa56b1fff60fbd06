"""Numbers as documents: CSV columns (series), with bins of their values as tokens; and token ids,
in flat .bin files as nanoGPT writes them or .npy arrays.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from archfit.data.images import array_header
from archfit.data.sources import DataSettings, KindHandler, each_file
from archfit.data.statistics import EvenSample
from archfit.data.streams import Blocks, DocumentBlock, Facts, Ledger, SourceFile, refused
from archfit.data.text import decoded
from archfit.data.vocabulary import Ids, TableVocabulary, Vocabulary
from archfit.spec import lazy_numpy as np
from archfit.spec.data_kinds import LARGEST_VOCAB
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.lazy_numpy import NDArray

VALUES_AT_ONCE = 1 << 17
VALUE_BYTES = 8
VALUES_HELD = (256 << 20) // VALUE_BYTES  # columns are read together as long as they fit
ID_BYTES = 4  # ids travel as little-endian uint32, whatever the file has
MISSING = frozenset(["", "nan", "na", "n/a", "n.a.", "#n/a", "null", "none", "?", "-", "--", "."])
ROWS_LOOKED_AT = 50


def series_look(start: bytes) -> str:
    """A word for a table, by its first bytes: most lines after the first hold several numbers."""
    lines = start.decode(errors="ignore").splitlines()[1:]
    rows = list(itertools.islice(csv.reader(lines), ROWS_LOOKED_AT))
    numeric = [row for row in rows if len(row) > 1 and any(map(_is_number, row))]
    return "columns of numbers" if len(rows) > 1 and len(numeric) > len(rows) / 2 else ""


def series_blocks(file: SourceFile, settings: DataSettings, ledger: Ledger) -> Blocks:
    """The wanted columns one after another, from as few readings as their values have room for."""
    rows = _rows(file, ledger)
    first = next(rows, [])
    below, count = _first_filled(rows)  # to the end, so that the ledger gets the hash
    header = first if _is_header(first, below) else []
    cells = itertools.zip_longest(first, below, fillvalue="")
    body = below if header else [lower if _is_missing(cell) else cell for cell, lower in cells]
    columns = _wanted(header, body, settings.columns, file.name)
    most = settings.max_bytes * (len(columns) + 1)  # the same bytes, which count once
    again = Ledger(most, files=ledger.files)
    at_once = max(1, VALUES_HELD // (count + 1))
    for start in range(0, len(columns), at_once):
        numbered = enumerate(_rows(file, again), start=1)
        below_header = itertools.islice(numbered, bool(header), None)
        yield from _columns(below_header, columns[start : start + at_once], file.name)


def _columns(rows: Iterator[tuple[int, list[str]]], columns: list[int], name: str) -> Blocks:
    """Each of `columns` as one document; a column alone is not held but passed on as it is read."""
    values = array("d")
    for number, row in rows:
        values.extend(_values(row, columns, name, number))
        if len(columns) == 1 and len(values) >= VALUES_AT_ONCE:
            yield DocumentBlock([np.array(values, "<f8").tobytes()], complete=False)
            values = array("d")
    table = np.frombuffer(values, np.float64).reshape(-1, len(columns))
    for column in table.T:
        for start in range(0, len(column), VALUES_AT_ONCE):
            part = column[start : start + VALUES_AT_ONCE].astype("<f8")
            yield DocumentBlock([part.tobytes()], complete=False)
        yield DocumentBlock([b""], complete=True)


def _first_filled(rows: Iterator[list[str]]) -> tuple[list[str], int]:
    """For each column the first cell that is not missing (or nothing), and the number of rows."""
    found, count = list[str](), 0
    for row in rows:
        count += 1
        if len(row) > len(found) or "" in found:
            cells = itertools.zip_longest(found, row, fillvalue="")
            found = [old or ("" if _is_missing(new) else new) for old, new in cells]
    return found, count


def _is_header(first: list[str], below: list[str]) -> bool:
    """Whether the first row has a word above a number; alone, it must be without numbers."""
    if not below:
        return not any(map(_is_number, first))
    above = [cell for cell, lower in zip(first, below, strict=False) if _is_number(lower)]
    return any(not _is_number(cell) and not _is_missing(cell) for cell in above)


def _rows(file: SourceFile, ledger: Ledger) -> Iterator[list[str]]:
    """The rows that hold something."""
    lines = decoded((line + b"\n" for line in file.lines(ledger)), file.name, "strict")
    with refused(csv.Error, "unreadable-csv", name=file.name):
        for row in csv.reader(lines):
            if any(cell.strip() for cell in row):
                yield row


def _wanted(header: list[str], body: list[str], columns: tuple[str, ...], name: str) -> list[int]:
    """Places of the columns asked for, or of all whose first value in `body` is a number."""
    if not columns:
        numeric = [place for place, cell in enumerate(body) if _is_number(cell)]
        refuse_if(bool(body) and not numeric, "no-numeric-column", name=name)
        return numeric
    names = [cell.strip() for cell in header]
    known = {str(place + 1): place for place in range(max(len(header), len(body)))}
    known |= {cell: place for place, cell in enumerate(names)}
    for column in columns:
        there = ", ".join(names) or f"1..{len(body)}"
        refuse_if(column not in known, "no-series", name=name, column=repr(column), there=there)
    return [known[column] for column in columns]


def _values(row: list[str], columns: list[int], name: str, number: int) -> list[float]:
    """The numbers of a row at the places `columns`."""
    with contextlib.suppress(ValueError, IndexError):
        values = [float(row[column]) for column in columns]
        if all(map(math.isfinite, values)):
            return values
    cells = {column: row[column] if column < len(row) else "" for column in columns}
    is_fine = {at: _is_number(cell) and math.isfinite(float(cell)) for at, cell in cells.items()}
    column = next(column for column in columns if not is_fine[column])
    cell = repr(cells[column])
    raise refusal("no-finite-number", name=name, column=column + 1, row=number, cell=cell)


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class Bins(TableVocabulary):
    """Intervals between `edges` (values outside fall into the first or last), and the separator."""

    name: ClassVar[str] = "bins"
    unit_bytes: ClassVar[int] = VALUE_BYTES
    edges: tuple[float, ...]
    size: int

    @property
    def values(self) -> NDArray[np.float64]:
        """The middle of each bin."""
        edges: NDArray[np.float64] = np.array(self.edges, "<f8")
        return edges[:-1] + np.diff(edges) / 2

    def encode(self, block: DocumentBlock) -> Ids:
        """The bin of each value."""
        values = np.frombuffer(b"".join(block.parts), "<f8")
        bins = np.searchsorted(np.array(self.edges[1:-1]), values, side="right")
        return self.with_ends(bins, block)


def bin_edges(values: NDArray[np.float64], bins: int, binning: str) -> tuple[float, ...]:
    """Edges of at most `bins` bins: equally wide, or equally full as far as ties allow."""
    low, high = float(values.min()), float(values.max())
    refuse_if(low == high, "constant-series", value=low)
    refuse_if(not math.isfinite(high - low), "wide-series", low=low, high=high)
    shares = np.arange(bins + 1) / bins
    is_uniform = binning == "uniform"
    edges = low + (high - low) * shares if is_uniform else np.quantile(values, shares)
    return tuple(np.unique(edges).tolist())


def bin_vocabulary(settings: DataSettings, contents: Iterable[bytes], _: Facts) -> Bins:
    """Bins that are equally wide over the range of the values, or equally full of a sample."""
    sample = EvenSample("<f8", 1)
    for content in contents:
        sample.add(content)
    values = sample.values.astype(np.float64)[:, 0]
    if settings.binning == "uniform":
        values = np.array([sample.lowest, sample.highest])
    edges = bin_edges(values, settings.count("bins"), settings.binning)
    return Bins(edges=edges, size=settings.rows(len(edges), "bins"))


SERIES = KindHandler(series_look, each_file(series_blocks), bin_vocabulary, (Bins,))


def token_blocks(file: SourceFile, settings: DataSettings, ledger: Ledger) -> Blocks:
    """The ids of one file; documents end at the separator's id, or the file is one document."""
    chunks, promised = file.unpacked(ledger), None
    separator = -1 if settings.separator is None else int(settings.separator)  # -1: no id is
    kind: np.dtype[Any] = np.dtype(settings.dtype).newbyteorder("<")
    if file.suffix == ".npy":
        first = io.BytesIO(next(chunks, b""))
        shape, kind = array_header(first, file.name)
        is_row = len(shape) == 1 and kind.kind in "ui"
        refuse_if(not is_row, "no-row-of-integers", name=file.name, kind=kind, shape=shape)
        chunks, promised = itertools.chain([first.read()], chunks), shape[0]
    for ids in _whole_ids(chunks, kind, promised, file.name):
        ends = np.flatnonzero(ids == separator)
        parts = [part.tobytes() for part in np.split(ids, ends)]
        yield DocumentBlock([parts[0], *(part[ID_BYTES:] for part in parts[1:])], complete=False)
    yield DocumentBlock([b""], complete=True)


def _whole_ids(
    chunks: Iterable[bytes], kind: np.dtype[Any], promised: int | None, name: str
) -> Iterator[NDArray[np.uint32]]:
    """The ids of a stream of numbers of one type; as many as its header promised, if it has one."""
    rest, found = b"", 0
    for chunk in chunks:
        data = rest + chunk
        cut = len(data) - len(data) % kind.itemsize
        ids, rest = np.frombuffer(data[:cut], kind), data[cut:]
        found += len(ids)
        if ids.size and not (ids.min() >= 0 and ids.max() < LARGEST_VOCAB):
            ends = {"least": ids.min(), "largest": ids.max(), "most": LARGEST_VOCAB - 1}
            raise refusal("no-token-ids", name=name, **ends)
        yield ids.astype("<u4")
    is_other = promised not in (None, found)
    refuse_if(is_other, "other-length", name=name, found=found, promised=promised)
    refuse_if(len(rest) > 0, "cut-token", name=name, size=kind.itemsize)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainIds(Vocabulary):
    """Ids as they came, with the separator they came with, if any."""

    name: ClassVar[str] = "ids"
    unit_bytes: ClassVar[int] = ID_BYTES
    size: int
    separator: int | None

    def encode(self, block: DocumentBlock) -> Ids:
        """The ids themselves, from little-endian uint32."""
        return self.with_ends(np.frombuffer(b"".join(block.parts), "<u4"), block)

    def content_of(self, ids: Ids) -> bytes:
        """The ids as little-endian uint32."""
        return ids.astype("<u4").tobytes()


def id_vocabulary(settings: DataSettings, contents: Iterable[bytes], _: Facts) -> PlainIds:
    """All ids up to the largest that occurs, that of the separator included."""
    separator = None if settings.separator is None else int(settings.separator)
    largest = -1 if separator is None else separator
    for content in contents:
        largest = max(largest, int(np.frombuffer(content, "<u4").max(initial=0)))
    return PlainIds(separator=separator, size=settings.rows(largest + 1, "ids"))


# Nothing looks like token ids: any numbers may be some.
TOKENS = KindHandler(lambda _: "", each_file(token_blocks), id_vocabulary, (PlainIds,))
