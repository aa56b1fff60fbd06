import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data import blocks
from archfit.data.blocks import Block, LineSeparator, blocks_of, character_cut, split_documents


def documents_of(stream: Iterable[Block]) -> list[bytes]:
    """Documents put together again from their parts, empty ones left out."""
    documents, begun = [], b""
    for block in stream:
        for index, part in enumerate(block.parts):
            begun += part
            if index < len(block.parts) - 1 or block.complete:
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
        if line in (mark + b"\n", mark + b"\r\n"):
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
    if content.endswith(b"\n" + mark):
        content += b"a"  # that last line is completed where a file is read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "HELD_PART_BYTES", held)
        found = documents_of(split_documents(chunked(content, sizes), LineSeparator(mark)))
    assert found == between_lines(content, mark)


@given(text=st.text("é本a𝄞", max_size=30), cut=st.integers(0, 90))
def test_a_cut_never_falls_into_a_character(text: str, cut: int) -> None:
    content = text.encode()
    place = character_cut(content, min(cut, len(content)))
    content[:place].decode()
    assert min(cut, len(content)) - 3 <= place <= cut


def test_long_documents_go_out_before_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "HELD_PART_BYTES", 1000)
    parts = list(split_documents([b"x" * 700] * 50, LineSeparator(b"|")))
    assert max(len(part) for block in parts for part in block.parts) < 2000
    assert documents_of(parts) == [b"x" * 35000]


def test_blank_lines_are_taken_off_documents() -> None:
    blank = LineSeparator(b"")
    found = documents_of(split_documents([b"\n\na\n\n\n\nb\n", b"c\n\n\n"], blank))
    assert found == [b"a", b"b\nc"]


def test_small_documents_share_blocks() -> None:
    made = list(blocks_of(b"x" * 1000 for _ in range(10_000)))
    assert sum(len(block.parts) for block in made) == 10_000
    assert len(made) == 3
