"""Round trips: what is encoded decodes to itself, for every vocabulary, any cut into blocks."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data.blocks import Block
from archfit.data.vocabulary import Bytes, Characters, Kmers, Vocabulary
from archfit.data.vocabulary_files import read_vocabulary

LETTERS = "ACGT"


def encoded(vocabulary: Vocabulary, documents: list[bytes], cuts: list[int]) -> np.ndarray:
    """Ids of documents sent as blocks: all at once, or cut where the vocabulary allows."""
    ids: list[np.ndarray] = []
    for document, cut in zip(documents, [*cuts, *(0 for _ in documents)], strict=False):
        place = vocabulary.cut(document, min(cut, len(document)))
        ids.append(vocabulary.encode(Block([document[:place]], complete=False)))
        ids.append(vocabulary.encode(Block([document[place:]], complete=True)))
    return np.concatenate(ids)


def check_round_trip(vocabulary: Vocabulary, documents: list[bytes], cuts: list[int]) -> None:
    again = read_vocabulary(vocabulary.as_json(), "tokenizer.json")
    ids = again.encode(Block(documents, complete=True))
    assert again.decode(ids) == documents
    assert ids.max(initial=0) < vocabulary.size
    assert (ids == vocabulary.separator).sum() == len(documents)
    assert np.array_equal(encoded(vocabulary, documents, cuts), ids)


CUTS = st.lists(st.integers(0, 20))


@given(documents=st.lists(st.binary(), min_size=1), cuts=CUTS)
def test_bytes(documents: list[bytes], cuts: list[int]) -> None:
    check_round_trip(Bytes(), documents, cuts)


@given(documents=st.lists(st.binary(min_size=1), min_size=1))
def test_bytes_are_their_values_and_256_ends_a_document(documents: list[bytes]) -> None:
    expected = [value for document in documents for value in (*document, 256)]
    assert Bytes().encode(Block(documents, complete=True)).tolist() == expected


@given(texts=st.lists(st.text("abé\n\0本𝄞"), min_size=1), cuts=CUTS)
def test_characters(texts: list[str], cuts: list[int]) -> None:
    alphabet = "".join(sorted("abé\n\0本𝄞"))
    check_round_trip(Characters(alphabet=alphabet, size=8), [t.encode() for t in texts], cuts)


@given(texts=st.lists(st.text(LETTERS), min_size=1), k=st.integers(1, 6), cuts=CUTS)
def test_kmers(texts: list[str], k: int, cuts: list[int]) -> None:
    size = 4**k + (4 if k > 1 else 0) + 1
    vocabulary = Kmers(alphabet=LETTERS, k=k, size=size)
    check_round_trip(vocabulary, [text.encode() for text in texts], cuts)


def test_kmers_are_numbered_as_words_in_order() -> None:
    vocabulary = Kmers(alphabet=LETTERS, k=3, size=69)
    words = ["".join(word) for word in itertools.product(LETTERS, repeat=3)]
    ids = vocabulary.encode(Block(["".join(words).encode() + b"GT"], complete=True))
    assert ids.tolist() == [*range(64), 64 + 2, 64 + 3, 68]


def test_mapped_letters_become_the_other() -> None:
    vocabulary = Kmers(alphabet="ACGNT", k=1, mapped={"R": "N"}, size=6)
    assert vocabulary.decode(vocabulary.encode(Block([b"ARC"], complete=True))) == [b"ANC"]


def test_what_is_not_in_the_alphabet_is_named() -> None:
    with pytest.raises(ValueError, match="letter 'X' is not in the alphabet ACGT"):
        Kmers(alphabet=LETTERS, k=1, size=5).encode(Block([b"AX"], complete=True))
    with pytest.raises(ValueError, match="character 'z' is not in the alphabet of 2"):
        Characters(alphabet="ab", size=3).encode(Block([b"az"], complete=True))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "tokenizer.json is not JSON"),
        ('{"format": "archfit-vocabulary", "version": 9}', "has version 9, not 1"),
        ('{"format": "archfit-vocabulary", "version": 1}', "is incomplete"),
        (
            '{"format": "archfit-vocabulary", "version": 1, "vocabulary": "x"}',
            "unknown vocabulary 'x'",
        ),
        ('{"model": 1}', "is not a tokenizer.json of Hugging Face"),
    ],
)
def test_a_damaged_description_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_vocabulary(text, "tokenizer.json")
