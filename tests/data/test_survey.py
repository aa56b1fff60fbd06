import hashlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data.blocks import Block
from archfit.data.prepare import prepare
from archfit.data.settings import Settings
from archfit.data.survey import LetterCounts, Nothing, SeenCharacters, survey


@given(documents=st.lists(st.binary(), min_size=1), cut=st.integers(0, 9))
def test_lengths_and_hashes_of_documents(documents: list[bytes], cut: int) -> None:
    first, *others = documents
    found = survey(
        [Block([first[:cut]], complete=False), Block([first[cut:], *others], complete=True)],
        Nothing(),
    )
    real = [document for document in documents if document]
    assert found.lengths.tolist() == [len(document) for document in real]
    hashes = [hashlib.sha256(document).digest() for document in real]
    assert found.digests.tolist() == [int.from_bytes(one[:8], "little") for one in hashes]
    assert found.bytes == sum(map(len, real))


@given(parts=st.lists(st.text("a\r\n", max_size=4).map(str.encode), min_size=1))
def test_line_ends_that_end_a_document_can_be_left_out_of_its_hash(parts: list[bytes]) -> None:
    blocks = [Block([part], complete=False) for part in parts[:-1]]
    blocks.append(Block([parts[-1], b"next\n"], complete=True))
    found = survey(blocks, Nothing(), b"\r\n")
    content = b"".join(parts)
    real = [document for document in (content, b"next\n") if document]
    hashes = [hashlib.sha256(document.rstrip(b"\r\n")).digest() for document in real]
    assert found.digests.tolist() == [int.from_bytes(one[:8], "little") for one in hashes]
    assert found.lengths.tolist() == [len(document) for document in real]


@pytest.mark.parametrize("kind", ["text", "bytes", "abc"])
def test_a_copy_at_the_end_of_a_file_is_on_the_same_side(kind: str, tmp_path: Path) -> None:
    lines = [f"document {number}" for number in range(200)]
    source, copies = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("\n<|doc|>\n".join(lines) + "\n")
    copies.write_text("\n<|doc|>\n".join(reversed(lines)) + "\n")
    chosen = Settings(kind=kind, separator="<|doc|>")
    data = prepare(str(source), tmp_path / "out", chosen, heldout=str(copies)).data
    leakage = data.description["leakage"]
    assert isinstance(leakage, dict)
    assert leakage["shared_documents"] == len(lines)


@given(st.lists(st.text()))
def test_the_alphabet_is_every_character_once(texts: list[str]) -> None:
    seen = SeenCharacters()
    for text in texts:
        seen.add(text.encode())
    assert seen.alphabet == "".join(sorted(set("".join(texts))))


@given(st.lists(st.text("ACGT")))
def test_letters_are_counted(texts: list[str]) -> None:
    letters = LetterCounts()
    for text in texts:
        letters.add(text.encode())
    assert letters.counts == Counter("".join(texts))
