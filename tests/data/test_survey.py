import hashlib
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from archfit.data.blocks import Block
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
