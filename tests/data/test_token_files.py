import io
from collections.abc import Callable

import numpy as np
import pytest

from archfit.data.series import token_blocks
from archfit.data.sources import DataSettings
from archfit.data.streams import Ledger, SourceFile

Writer = Callable[[str, bytes], SourceFile]
IDS = np.random.default_rng(0).integers(0, 50, 1000)


def documents(file: SourceFile, ledger: Ledger, **options: str) -> list[list[int]]:
    settings = DataSettings(kind="tokens", **options)  # type: ignore[arg-type]  # dtype or separator
    found: list[list[int]] = [[]]
    for block in token_blocks(file, settings, ledger):
        for part, ends in block.ends():
            found[-1] += np.frombuffer(part, "<u4").tolist()
            if ends:
                found.append([])
    return [document for document in found if document]


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_a_bin_file_is_read_as_nanogpt_writes_it(
    dtype: str, source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("a.bin", IDS.astype(dtype).tobytes())
    assert documents(file, ledger, dtype=dtype) == [IDS.tolist()]


@pytest.mark.parametrize("dtype", ["int64", ">u2", "uint8"])
def test_an_array_says_its_type_itself(dtype: str, source_file: Writer, ledger: Ledger) -> None:
    file = source_file("a.npy", npy(IDS.astype(dtype)))
    assert documents(file, ledger) == [IDS.tolist()]


def test_the_separator_ends_documents(
    source_file: Writer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archfit.data.streams.BLOCK_BYTES", 66)
    file = source_file("a.bin", IDS.astype("<u2").tobytes())
    expected = [[int(word) for word in part.split()] for part in f" {_words()} ".split(" 7 ")]
    assert documents(file, ledger, separator="7") == [document for document in expected if document]


def _words() -> str:
    return " ".join(map(str, IDS.tolist()))


def test_half_a_token_is_refused(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"a\.bin ends inside a token.*check --dtype"):
        documents(source_file("a.bin", b"123"), ledger)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.array([1, -1]), "holds ids from -1 to 1; token ids are"),
        (np.array([1.0]), r"holds float64 of shape \(1,\); save one row of integers"),
        (np.ones((2, 2), int), r"of shape \(2, 2\); save one row"),
    ],
)
def test_arrays_of_other_things_are_refused(
    array: np.ndarray, sentence: str, source_file: Writer, ledger: Ledger
) -> None:
    with pytest.raises(ValueError, match=sentence):
        documents(source_file("a.npy", npy(array)), ledger)


@pytest.mark.parametrize(
    ("promised", "sentence"),
    [
        (b"(9999,)", r"a\.npy holds 1000 ids, and its header says 9999; write it again"),
        (b"(500,) ", r"a\.npy holds 1000 ids, and its header says 500; write it again"),
    ],
)
def test_an_array_holds_what_its_header_says(
    promised: bytes, sentence: str, source_file: Writer, ledger: Ledger
) -> None:
    content = npy(IDS).replace(b"(1000,)", promised)
    with pytest.raises(ValueError, match=sentence):
        documents(source_file("a.npy", content), ledger)


def test_an_array_cut_inside_an_id_is_truncated(source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="holds 999 ids, and its header says 1000"):
        documents(source_file("a.npy", npy(IDS)[:-3]), ledger)
