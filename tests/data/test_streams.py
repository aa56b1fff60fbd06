import gzip
import hashlib
import lzma
import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from archfit.data import streams
from archfit.data.streams import (
    DocumentBlock,
    Ledger,
    SourceFile,
    blocks_of,
    character_cut,
    documents_between,
)

Writer = Callable[[str, bytes], SourceFile]
TEXT = b"".join(b"line %d of some text\n" % number for number in range(200_000))
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("suffix", PACK)
def test_packed_files_read_like_plain_ones(
    suffix: str, source_file: Writer, ledger: Ledger
) -> None:
    packed = PACK[suffix](TEXT)
    file = source_file("t.txt" + suffix, packed)
    assert b"".join(file.unpacked(ledger)) == TEXT
    assert file.suffix == ".txt"
    noted = ledger.files["t.txt" + suffix]
    assert (noted.bytes, noted.sha256) == (len(packed), hashlib.sha256(packed).hexdigest())


@pytest.mark.parametrize("suffix", PACK)
def test_streams_packed_one_after_another_are_all_read(
    suffix: str, source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("t" + suffix, PACK[suffix](b"first ") + PACK[suffix](b"second"))
    assert b"".join(file.unpacked(ledger)) == b"first second"


@pytest.mark.parametrize("suffix", PACK)
def test_a_truncated_file_is_named(suffix: str, source_file: Writer, ledger: Ledger) -> None:
    file = source_file("t" + suffix, PACK[suffix](os.urandom(100_000))[:-20])
    with pytest.raises(ValueError, match=r"^t\.\w+ is truncated: its packed data ends too early"):
        list(file.unpacked(ledger))


@pytest.mark.parametrize("suffix", PACK)
def test_a_damaged_file_is_named(suffix: str, source_file: Writer, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"^t\.\w+ is damaged"):
        list(source_file("t" + suffix, b"no archive at all" * 10).unpacked(ledger))


@pytest.mark.parametrize("suffix", PACK)
def test_a_bomb_is_stopped_by_the_limit(suffix: str, source_file: Writer) -> None:
    file = source_file("bomb" + suffix, PACK[suffix](bytes(25_000_000)))
    sizes: list[int] = []
    with pytest.raises(ValueError, match=r"past 9000000 bytes; .* raise --max-bytes"):
        sizes.extend(map(len, file.unpacked(Ledger(9_000_000))))
    assert sum(sizes) <= 9_000_000


def test_a_file_that_grows_is_refused(source_file: Writer, ledger: Ledger) -> None:
    file = source_file("log.txt", b"x" * 100)
    stream = file.chunks(ledger)
    next(stream)
    with open(file.path, "ab") as log:
        log.write(b"more")
    with pytest.raises(ValueError, match=r"^log\.txt changed while it was read"):
        list(stream)


def test_a_file_that_grows_for_ever_is_not_read_for_ever(
    source_file: Writer, ledger: Ledger
) -> None:
    file = source_file("log.txt", b"x" * 100)
    with open(file.path, "ab", buffering=0) as log, pytest.raises(ValueError, match="changed"):
        any(log.write(b"y" * 100) == 0 for _ in file.chunks(ledger))


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path, ledger: Ledger) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is not a regular file"):
        list(SourceFile(tmp_path / "pipe", "pipe").chunks(ledger))


def test_lines_come_without_their_ends(source_file: Writer, ledger: Ledger) -> None:
    assert list(source_file("t.gz", gzip.compress(TEXT)).lines(ledger)) == TEXT.splitlines()


def test_a_line_without_end_is_refused(
    source_file: Writer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BLOCK_BYTES", 1 << 16)
    with pytest.raises(ValueError, match="line of more than 1048576 bytes"):
        list(source_file("t.jsonl", bytes(1_200_000)).lines(ledger))


def documents_of(stream: Iterable[DocumentBlock]) -> list[bytes]:
    """Documents put together again from their parts, empty ones left out."""
    documents, begun = [], b""
    for block in stream:
        for part, ends in block.ends():
            begun += part
            if ends:
                documents.append(begun)
                begun = b""
    assert not begun
    return [document for document in documents if document]


def chunked(text: bytes, sizes: list[int]) -> list[bytes]:
    chunks, place = [], 0
    for size in sizes:
        chunks.append(text[place : place + size])
        place += size
    return [*chunks, text[place:]]


def between_lines(text: bytes, mark: bytes) -> list[bytes]:
    """The documents, found line by line."""
    documents, begun = [], b""
    for line in re.findall(rb"[^\n]*\n|[^\n]+", text):
        if line in (mark, mark + b"\n", mark + b"\r\n"):
            documents.append(re.sub(rb"\r?\n\Z", b"", begun))
            begun = b""
        else:
            begun += line
    documents.append(begun if mark else re.sub(rb"\r?\n\Z", b"", begun))
    return [document for document in documents if document not in (b"", mark)]


@pytest.mark.parametrize("mark", [b"|", b""])
@pytest.mark.parametrize("held", [4, 1 << 20])
@given(
    text=st.lists(st.sampled_from(["a", "b" * 9, "|", "\r", "\n", "\r\n", "\n|\n"])).map("".join),
    sizes=st.lists(st.integers(0, 9)),
)
def test_documents_depend_neither_on_line_ends_nor_on_how_the_stream_is_cut(
    mark: bytes, held: int, text: str, sizes: list[int]
) -> None:
    content = text.encode()
    if not mark and content.endswith(b"\n"):
        content += b"a"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "HELD_PART_BYTES", held)
        found = documents_of(documents_between(chunked(content, sizes), mark))
    assert found == between_lines(content, mark)


@given(text=st.text("é本a𝄞", max_size=30), cut=st.integers(0, 90))
def test_a_cut_never_falls_into_a_character(text: str, cut: int) -> None:
    content = text.encode()
    place = character_cut(content, min(cut, len(content)))
    content[:place].decode()
    assert min(cut, len(content)) - 3 <= place <= cut


def test_long_documents_go_out_before_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HELD_PART_BYTES", 1000)
    parts = list(documents_between([b"x" * 700] * 50, b"|"))
    assert max(len(part) for block in parts for part in block.parts) < 2000
    assert documents_of(parts) == [b"x" * 35000]


def test_every_part_but_the_last_of_an_unfinished_block_ends_a_document() -> None:
    for complete in (True, False):
        block = DocumentBlock([b"a", b"b"], complete=complete)
        assert list(block.ends()) == [(b"a", True), (b"b", complete)]


def test_small_documents_share_blocks() -> None:
    made = list(blocks_of(b"x" * 1000 for _ in range(10_000)))
    assert sum(len(block.parts) for block in made) == 10_000
    assert len(made) == 3
