"""Round trips: what is encoded decodes to itself, for every vocabulary, any cut into blocks."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data.fasta import Kmers
from archfit.data.images import Levels, Palette, colour_clusters
from archfit.data.kinds import read_vocabulary
from archfit.data.series import Bins, PlainIds, bin_edges
from archfit.data.streams import DocumentBlock
from archfit.data.vocabulary import Bytes, Characters, Vocabulary

LETTERS = "ACGT"


def encoded(vocabulary: Vocabulary, documents: list[bytes], cuts: list[int]) -> np.ndarray:
    """Ids of documents sent as blocks: all at once, or cut where the vocabulary allows."""
    ids: list[np.ndarray] = []
    for document, cut in zip(documents, [*cuts, *(0 for _ in documents)], strict=False):
        place = vocabulary.cut(document, min(cut, len(document)))
        ids.append(vocabulary.encode(DocumentBlock([document[:place]], complete=False)))
        ids.append(vocabulary.encode(DocumentBlock([document[place:]], complete=True)))
    return np.concatenate(ids)


def check_round_trip(vocabulary: Vocabulary, documents: list[bytes], cuts: list[int]) -> None:
    again = read_vocabulary(vocabulary.as_json(), "tokenizer.json")
    ids = again.encode(DocumentBlock(documents, complete=True))
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
    assert Bytes().encode(DocumentBlock(documents, complete=True)).tolist() == expected


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
    ids = vocabulary.encode(DocumentBlock(["".join(words).encode() + b"GT"], complete=True))
    assert ids.tolist() == [*range(64), 64 + 2, 64 + 3, 68]


def test_mapped_letters_become_the_other() -> None:
    vocabulary = Kmers(alphabet="ACGNT", k=1, mapped={"R": "N"}, size=6)
    assert vocabulary.decode(vocabulary.encode(DocumentBlock([b"ARC"], complete=True))) == [b"ANC"]


def test_what_is_not_in_the_alphabet_is_named() -> None:
    with pytest.raises(ValueError, match="letter 'X' is not in the alphabet ACGT"):
        Kmers(alphabet=LETTERS, k=1, size=5).encode(DocumentBlock([b"AX"], complete=True))
    with pytest.raises(ValueError, match="character 'z' is not in the alphabet of 2"):
        Characters(alphabet="ab", size=3).encode(DocumentBlock([b"az"], complete=True))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "tokenizer.json is not a tokenizer.json .it is not JSON"),
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


RNG = np.random.default_rng(0)


def back(vocabulary: Vocabulary, documents: list[bytes]) -> list[bytes]:
    again = read_vocabulary(vocabulary.as_json(), "tokenizer.json")
    return again.decode(again.encode(DocumentBlock(documents, complete=True)))


@given(documents=st.lists(st.binary(min_size=1), min_size=1))
def test_256_levels_lose_nothing(documents: list[bytes]) -> None:
    assert back(Levels(levels=256, size=257), documents) == documents


@given(pixels=st.binary(min_size=1), bits=st.integers(1, 8))
def test_levels_decode_to_pixels_of_the_same_level(pixels: bytes, bits: int) -> None:
    vocabulary = Levels(levels=2**bits, size=2**bits + 1)
    (once,) = back(vocabulary, [pixels])
    assert back(vocabulary, [once]) == [once]
    assert [pixel >> (8 - bits) for pixel in pixels] == [pixel >> (8 - bits) for pixel in once]


def test_the_nearest_colour_is_taken() -> None:
    colours = tuple(tuple(map(int, colour)) for colour in RNG.integers(0, 256, (20, 3)))
    vocabulary = Palette(colours=colours, size=21)  # type: ignore[arg-type]  # three numbers each
    pixels = RNG.integers(0, 256, (500, 3), np.uint8)
    distances = ((pixels[:, None].astype(int) - np.array(colours)) ** 2).sum(-1)
    ids = vocabulary.encode(DocumentBlock([pixels.tobytes()], complete=True))[:-1]
    picked = distances[np.arange(500), ids.astype(int)]
    assert picked.tolist() == distances.min(axis=1).tolist()
    (once,) = back(vocabulary, [pixels.tobytes()])
    assert back(vocabulary, [once]) == [once]


def test_clusters_find_well_separated_colours() -> None:
    centres = np.array([[10, 10, 10], [200, 30, 30], [30, 200, 40], [40, 40, 220]])
    noise = RNG.integers(-5, 6, (4, 300, 3))
    pixels = (centres[:, None] + noise).reshape(-1, 3).astype(np.uint8)
    found = np.array(colour_clusters(pixels, 4))
    assert np.abs(found - centres[[0, 2, 3, 1]]).max() <= 2


def test_few_colours_are_their_own_palette() -> None:
    pixels = np.array([[0, 0, 0], [255, 0, 0], [0, 0, 0]], np.uint8)
    assert colour_clusters(pixels, 512) == ((0, 0, 0), (255, 0, 0))


@given(
    values=st.lists(st.floats(-1e9, 1e9), min_size=2, unique=True),
    bins=st.integers(2, 50),
    binning=st.sampled_from(["uniform", "quantile"]),
)
def test_a_value_comes_back_within_its_bin(values: list[float], bins: int, binning: str) -> None:
    edges = np.array(bin_edges(np.array(values), bins, binning))
    vocabulary = Bins(edges=tuple(edges.tolist()), size=len(edges))
    (once,) = back(vocabulary, [np.array(values, "<f8").tobytes()])
    found = np.frombuffer(once, "<f8")
    width = (edges[1:] - edges[:-1]).max()
    assert np.abs(found - values).max() <= width * (1 + 1e-9)


def test_quantile_bins_are_equally_full() -> None:
    values = RNG.exponential(size=10_000)
    edges = bin_edges(values, 16, "quantile")
    ids = Bins(edges=edges, size=17).encode(
        DocumentBlock([values.astype("<f8").tobytes()], complete=True)
    )
    assert np.bincount(ids[:-1].astype(int)).tolist() == [625] * 16


def test_a_flat_series_has_nothing_to_predict() -> None:
    with pytest.raises(ValueError, match=r"every value of the series is 3\.0"):
        bin_edges(np.array([3.0, 3.0]), 4, "uniform")
    with pytest.raises(ValueError, match="span more than a float64 can"):
        bin_edges(np.array([-1e308, 1e308]), 4, "uniform")


@given(ids=st.lists(st.integers(0, 9)))
def test_ids_stay_what_they_are(ids: list[int]) -> None:
    content = np.array(ids, "<u4").tobytes()
    assert back(PlainIds(size=10, separator=None), [content]) == [content]
    assert back(PlainIds(size=11, separator=10), [content, content]) == [content, content]
