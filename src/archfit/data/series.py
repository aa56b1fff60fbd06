"""CSV columns as series: one document a column, its values as little-endian float64."""

from __future__ import annotations

import codecs
import csv
import itertools
import math
from array import array
from typing import TYPE_CHECKING

from archfit.data.blocks import Block
from archfit.data.text import checked_utf8
from archfit.data.unpack import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from archfit.data.settings import Settings
    from archfit.data.unpack import Ledger, SourceFile

VALUES_AT_ONCE = 1 << 17
VALUE_BYTES = 8
VALUES_HELD = (256 << 20) // VALUE_BYTES  # columns are read together as long as they fit
MISSING = frozenset(["", "nan", "na", "n/a", "n.a.", "#n/a", "null", "none", "?", "-", "--", "."])


def series_blocks(file: SourceFile, settings: Settings, ledger: Ledger) -> Iterator[Block]:
    """The wanted columns one after another, from as few readings as their values have room for."""
    rows = _rows(file, ledger)
    first = next(rows, [])
    below, count = _first_filled(rows)  # to the end, so that the ledger gets the hash
    header = first if _is_header(first, below) else []
    body = below if header else _filled(first, below)
    columns = _wanted(header, body, settings.columns, file.name)
    at_once = max(1, VALUES_HELD // (count + 1))
    for start in range(0, len(columns), at_once):
        body_rows = enumerate(_rows(file, ledger.again()), start=1)
        if header:
            next(body_rows)
        yield from _columns(body_rows, columns[start : start + at_once], file.name)


def _columns(
    rows: Iterator[tuple[int, list[str]]], columns: list[int], name: str
) -> Iterator[Block]:
    """Each of `columns` as one document; a column alone is not held but passed on as it is read."""
    import numpy as np

    values = array("d")
    for number, row in rows:
        values.extend(_values(row, columns, name, number))
        if len(columns) == 1 and len(values) >= VALUES_AT_ONCE:
            yield Block([np.array(values, "<f8").tobytes()], complete=False)
            values = array("d")
    table = np.frombuffer(values, np.float64).reshape(-1, len(columns))
    for column in table.T:
        for start in range(0, len(column), VALUES_AT_ONCE):
            part = column[start : start + VALUES_AT_ONCE].astype("<f8")
            yield Block([part.tobytes()], complete=False)
        yield Block([b""], complete=True)


def _first_filled(rows: Iterator[list[str]]) -> tuple[list[str], int]:
    """For each column the first cell that is not missing (or nothing), and the number of rows."""
    found: list[str] = []
    empty: list[int] = []  # columns whose cells were all missing so far
    count = 0
    for row in rows:
        count += 1
        if len(row) > len(found):
            empty += range(len(found), len(row))
            found += [""] * (len(row) - len(found))
        if empty:
            for place in empty:
                if place < len(row) and not _is_missing(row[place]):
                    found[place] = row[place]
            empty = [place for place in empty if not found[place]]
    return found, count


def _filled(first: list[str], below: list[str]) -> list[str]:
    """The first row, with what stands below its missing cells."""
    pairs = itertools.zip_longest(first, below, fillvalue="")
    return [lower if _is_missing(cell) else cell for cell, lower in pairs]


def _is_header(first: list[str], below: list[str]) -> bool:
    """Whether the first row has a word above a number; alone, it must be without numbers."""
    if not below:
        return not any(map(_is_number, first))
    pairs = zip(first, below, strict=False)
    return any(
        _is_number(lower) and not _is_number(cell) and not _is_missing(cell)
        for cell, lower in pairs
    )


def _rows(file: SourceFile, ledger: Ledger) -> Iterator[list[str]]:
    """The rows that hold something."""
    lines = checked_utf8((line + b"\n" for line in lines_of(file, ledger)), file.name, "strict")
    start = next(lines, b"").removeprefix(codecs.BOM_UTF8)
    try:
        for row in csv.reader(line.decode() for line in itertools.chain([start], lines)):
            if any(cell.strip() for cell in row):
                yield row
    except csv.Error as problem:
        raise ValueError(f"{file.name} is not readable as CSV ({problem})") from problem


def _wanted(header: list[str], body: list[str], columns: tuple[str, ...], name: str) -> list[int]:
    """Places of the columns asked for, or of all whose first value in `body` is a number."""
    if not columns:
        numeric = [place for place, cell in enumerate(body) if _is_number(cell)]
        if body and not numeric:
            raise ValueError(f"{name} has no column that starts with a number; choose by --columns")
        return numeric
    names = [cell.strip() for cell in header]
    known = {str(place + 1): place for place in range(max(len(header), len(body)))}
    known |= {cell: place for place, cell in enumerate(names)}
    for column in columns:
        if column not in known:
            raise ValueError(
                f"{name} has no column {column!r}; it has {', '.join(names) or f'1..{len(body)}'}"
            )
    return [known[column] for column in columns]


def _values(row: list[str], columns: list[int], name: str, number: int) -> list[float]:
    """The numbers of a row at the places `columns`."""
    try:
        values = [float(row[column]) for column in columns]
    except (ValueError, IndexError):
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        raise _not_finite(row, columns, name, number)
    return values


def _not_finite(row: list[str], columns: list[int], name: str, number: int) -> ValueError:
    cells = [(column, row[column] if column < len(row) else "") for column in columns]
    column, cell = next(
        one for one in cells if not (_is_number(one[1]) and math.isfinite(float(one[1])))
    )
    return ValueError(
        f"{name}, column {column + 1}, row {number} holds {cell!r}, which is not a finite number; "
        "fill or drop it, or leave the column out by --columns"
    )


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
