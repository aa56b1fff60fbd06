import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data.blocks import Block
from archfit.data.numeric_vocabulary import (
    Bins,
    Levels,
    Palette,
    PlainIds,
    bin_edges,
    colour_clusters,
)
from archfit.data.vocabulary import Vocabulary
from archfit.data.vocabulary_files import read_vocabulary

RNG = np.random.default_rng(0)


def back(vocabulary: Vocabulary, documents: list[bytes]) -> list[bytes]:
    again = read_vocabulary(vocabulary.as_json(), "tokenizer.json")
    return again.decode(again.encode(Block(documents, complete=True)))


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
    ids = vocabulary.encode(Block([pixels.tobytes()], complete=True))[:-1]
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
    ids = Bins(edges=edges, size=17).encode(Block([values.astype("<f8").tobytes()], complete=True))
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
