"""CSV columns as series: one document a column, its values as little-endian float64."""

from __future__ import annotations

import csv
import math
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


def series_blocks(file: SourceFile, settings: Settings, ledger: Ledger) -> Iterator[Block]:
    """The wanted columns one after another; each is a reading of its own, so memory stays small."""
    rows = _rows(file, ledger)
    first, second = next(rows, []), next(rows, [])
    header = [] if all(map(_is_number, first)) else first
    columns = _wanted(header, second if header else first, settings.columns, file.name)
    for _ in rows:  # to its end, so that the ledger gets the hash
        pass
    for column in columns:
        body = _rows(file, ledger.again())
        if header:
            next(body)
        yield from _column(body, column, f"{file.name}, column {column + 1}", 2 if header else 1)


def _column(rows: Iterator[list[str]], column: int, name: str, start: int) -> Iterator[Block]:
    import numpy as np

    values: list[float] = []
    for number, row in enumerate(rows, start=start):
        values.append(_value(row, column, f"{name}, row {number}"))
        if len(values) == VALUES_AT_ONCE:
            yield Block([np.array(values, "<f8").tobytes()], complete=False)
            values = []
    yield Block([np.array(values, "<f8").tobytes()], complete=True)


def _rows(file: SourceFile, ledger: Ledger) -> Iterator[list[str]]:
    """The rows that hold something."""
    lines = checked_utf8((line + b"\n" for line in lines_of(file, ledger)), file.name, "strict")
    try:
        for row in csv.reader(line.decode() for line in lines):
            if any(cell.strip() for cell in row):
                yield row
    except csv.Error as problem:
        raise ValueError(f"{file.name} is not readable as CSV ({problem})") from problem


def _wanted(header: list[str], body: list[str], columns: tuple[str, ...], name: str) -> list[int]:
    """Places of the columns asked for, or of all whose first value is a number."""
    if not columns:
        numeric = [place for place, cell in enumerate(body) if _is_number(cell)]
        if body and not numeric:
            raise ValueError(
                f"{name} has no column of numbers in its first row; choose some by --columns"
            )
        return numeric
    names = [cell.strip() for cell in header]
    known = {str(place + 1): place for place in range(len(body))}
    known |= {cell: place for place, cell in enumerate(names)}
    for column in columns:
        if column not in known:
            raise ValueError(
                f"{name} has no column {column!r}; it has {', '.join(names) or f'1..{len(body)}'}"
            )
    return [known[column] for column in columns]


def _value(row: list[str], column: int, where: str) -> float:
    cell = row[column] if column < len(row) else ""
    if not _is_number(cell):
        raise ValueError(
            f"{where} holds {cell!r}, which is not a finite number; fill or drop it, "
            "or leave the column out by --columns"
        )
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
