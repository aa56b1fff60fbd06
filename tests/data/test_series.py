from collections.abc import Callable, Iterator

import numpy as np
import pytest

from archfit.data.series import series_blocks
from archfit.data.sources import DataSettings
from archfit.data.streams import Ledger, SourceFile

Writer = Callable[[str, bytes], SourceFile]
CSV = b'day,price,"odd, name",volume\nmon,1.5,7,10\ntue,-2e3,8,20\n\nwed,0,9,30\n'


def series(file: SourceFile, ledger: Ledger, *columns: str) -> list[list[float]]:
    settings = DataSettings(kind="series", columns=columns)
    found: list[list[float]] = [[]]
    for block in series_blocks(file, settings, ledger):
        found[-1] += np.frombuffer(b"".join(block.parts), "<f8").tolist()
        if block.complete:
            found.append([])
    return found[:-1]


def test_every_column_of_numbers_is_a_series(source_file: Writer, ledger: Ledger) -> None:
    found = series(source_file("a.csv", CSV), ledger)
    assert found == [[1.5, -2000, 0], [7, 8, 9], [10, 20, 30]]
    assert list(ledger.files) == ["a.csv"]


def test_columns_are_chosen_by_name_or_number(source_file: Writer, ledger: Ledger) -> None:
    file = source_file("a.csv", CSV)
    assert series(file, ledger, "volume", "2") == [[10, 20, 30], [1.5, -2000, 0]]
    with pytest.raises(ValueError, match=r"a\.csv has no column 'cost'; it has day, price"):
        series(file, ledger, "cost")


def test_a_file_without_header_counts_its_columns(source_file: Writer, ledger: Ledger) -> None:
    assert series(source_file("a.csv", b"1,2\n3,4\n"), ledger, "2") == [[2, 4]]


def test_long_series_come_in_parts(
    source_file: Writer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.data.series.VALUES_AT_ONCE", 10)
    values = list(range(30))
    file = source_file("a.csv", "\n".join(map(str, values)).encode())
    assert series(file, ledger) == [values]


@pytest.mark.parametrize("cell", ["n/a", "", "nan", "inf"])
def test_a_missing_value_is_named_by_row(cell: str, source_file: Writer, ledger: Ledger) -> None:
    file = source_file("a.csv", f"t,x\n1,2\n2,{cell}\n".encode())
    with pytest.raises(ValueError, match=rf"column 2, row 3 holds '{cell}', which is not a finite"):
        series(file, ledger)


def test_words_only_are_no_series(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="has no column that starts with a number"):
        series(source_file("a.csv", b"a,b\nc,d\n"), ledger)


def test_a_cell_without_end_is_refused(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"a\.csv is not readable as CSV"):
        series(source_file("a.csv", b'x\n1\n"' + b"2" * 200_000), ledger)


@pytest.mark.parametrize("content", [b"price,day\n1,2\n3,4\n", b'"price",day\n1,2\n3,4\n'])
def test_a_byte_order_mark_is_no_part_of_the_header(
    content: bytes, source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("a.csv", b"\xef\xbb\xbf" + content)
    assert series(file, ledger, "price") == [[1, 3]]


def test_a_byte_order_mark_hides_no_number(source_file: Writer, ledger: Ledger) -> None:
    file = source_file("a.csv", b"\xef\xbb\xbf1,2\n3,4\n")
    assert series(file, ledger) == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"2020-01-1,3\n2020-01-2,4\n", [[3, 4]]),
        (b"2020-01-1,3\n", [[3]]),
        (b"2019,x\n1,2\n", [[1], [2]]),
        (b"x,y\na,2\n", [[2]]),
        (b"x,y\n", []),
        (b"a,b,\n1,2,\n3,4,\n", [[1, 3], [2, 4]]),
        (b"ticket,n\nA5,1\n12,2\n", [[1, 2]]),
    ],
)
def test_a_header_is_words_above_numbers(
    content: bytes, expected: list[list[float]], source_file: Writer, ledger: Ledger
) -> None:
    assert series(source_file("a.csv", content), ledger) == expected


@pytest.mark.parametrize("cell", ["nan", "", "NA", "inf"])
@pytest.mark.parametrize("header", ["", "x,y\n"])
def test_a_column_with_a_missing_first_cell_is_named(
    cell: str, header: str, source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("a.csv", f"{header}{cell},3\n1,4\n".encode())
    row = 2 if header else 1
    with pytest.raises(ValueError, match=rf"column 1, row {row} holds '{cell}', which is not"):
        series(file, ledger)


def test_a_cell_past_the_first_row_is_not_lost(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="column 3, row 1 holds ''"):
        series(source_file("a.csv", b"1,2\n3,4,5\n"), ledger)


@pytest.mark.parametrize(("held", "readings"), [(10**6, 2), (8, 3), (1, 5)])
def test_a_file_is_read_as_often_as_its_columns_have_no_room(
    held: int,
    readings: int,
    source_file: Writer,
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    lines = SourceFile.lines

    def noted(file: SourceFile, ledger: Ledger) -> Iterator[bytes]:
        read.append(file.name)
        return lines(file, ledger)

    monkeypatch.setattr(SourceFile, "lines", noted)
    monkeypatch.setattr("archfit.data.series.VALUES_HELD", held)
    monkeypatch.setattr("archfit.data.series.VALUES_AT_ONCE", 2)
    file = source_file("a.csv", b"a,b,c,d\n" + b"1,2,3,4\n" * 3)
    assert series(file, ledger) == [[1] * 3, [2] * 3, [3] * 3, [4] * 3]
    assert len(read) == readings
