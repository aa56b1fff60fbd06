import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archfit.data import statistics
from archfit.data.statistics import (
    EvenSample,
    cooccurrence,
    counts_of,
    pair_counts,
    unigram_entropy_bits,
)

RNG = np.random.default_rng(0)


@given(st.lists(st.integers(0, 20), min_size=1))
def test_entropy_is_that_of_the_frequencies(ids: list[int]) -> None:
    shares = [count / len(ids) for count in Counter(ids).values()]
    expected = -sum(share * math.log2(share) for share in shares)
    assert unigram_entropy_bits(counts_of(np.array(ids), 21)) == pytest.approx(expected, abs=1e-12)


def test_counting_in_pieces_is_counting() -> None:
    ids = RNG.integers(0, 300, 700_000).astype(np.uint16)
    assert np.array_equal(counts_of(ids, 300), np.bincount(ids, minlength=300))


@given(st.lists(st.sampled_from([3, 5, 9, 70_000]), min_size=2))
def test_pairs_are_counted_among_the_tokens_in_use(ids: list[int]) -> None:
    used = sorted(set(ids))
    pairs = Counter(itertools.pairwise(ids))
    expected = [[pairs[first, second] for second in used] for first in used]
    assert pair_counts(np.array(ids)).toarray().tolist() == expected


def chain_of_rank(rank: int, tokens: int, length: int) -> np.ndarray:
    """A Markov chain whose transition matrix is a product of stochastic factors of that rank."""
    states = RNG.integers(0, rank, tokens)  # each token leads to one of `rank` next distributions
    groups = np.array_split(RNG.permutation(tokens), rank)
    ids = np.zeros(length, np.uint16)
    choices = RNG.random(length)
    for place in range(1, length):
        group = groups[states[ids[place - 1]]]
        ids[place] = group[int(choices[place] * len(group))]
    return ids


def ranks(found: list[dict[str, Any]]) -> dict[float, int]:
    return {rank["energy"]: rank["rank"] for rank in found}


@pytest.mark.parametrize("rank", [2, 3, 8])
def test_the_rank_of_a_markov_chain_is_found(rank: int) -> None:
    found = cooccurrence(chain_of_rank(rank, 40, 400_000))
    assert ranks(found["normalised"])[0.99] == rank
    assert all(rank["exact"] for rank in found["normalised"] + found["plain"])


def test_independent_tokens_have_only_what_chance_gives() -> None:
    found = cooccurrence(RNG.integers(0, 50, 200_000))
    assert found["chance_energy"] > 0.8
    assert ranks(found["plain"])[0.9] == 1


def by_dense_svd(matrix: np.ndarray) -> dict[str, list[dict[str, Any]]]:
    """The same ranks, from a full singular value decomposition written out."""
    shares = matrix / matrix.sum()
    scaled = shares / np.sqrt(np.outer(shares.sum(1), shares.sum(0)))
    found = {}
    for name, values in (("plain", shares), ("normalised", scaled)):
        squares = np.linalg.svd(values)[1] ** 2
        squares = squares if name == "plain" else squares[1:]
        held = np.cumsum(squares) / squares.sum()
        extra = 0 if name == "plain" else 1
        found[name] = [
            {"energy": e, "rank": int((held < e).sum()) + 1 + extra, "exact": True}
            for e in statistics.ENERGIES
        ]
    return found


def test_ranks_agree_with_a_full_decomposition() -> None:
    ids = np.concatenate([chain_of_rank(5, 30, 5000), RNG.integers(0, 30, 5000)])
    matrix = np.zeros((30, 30))
    np.add.at(matrix, (ids[:-1], ids[1:]), 1)
    found, expected = cooccurrence(ids), by_dense_svd(matrix)
    assert (found["plain"], found["normalised"]) == (expected["plain"], expected["normalised"])


def test_a_large_vocabulary_gives_the_same_or_a_lower_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = chain_of_rank(6, 200, 60_000)
    exact = cooccurrence(ids)
    monkeypatch.setattr(statistics, "DENSE_TOKENS", 100)
    monkeypatch.setattr(statistics, "LARGEST_VALUES", 20)
    for large, small in zip(cooccurrence(ids)["normalised"], exact["normalised"], strict=True):
        assert large == small if large["exact"] else large["rank"] <= small["rank"]


def test_long_streams_are_sampled_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "PAIRS_LOOKED_AT", 6400)
    found = cooccurrence(chain_of_rank(3, 20, 50_000))
    assert found["pairs"] == 6400 - 64
    assert ranks(found["normalised"])[0.5] <= 3


def stream_of_all_pairs(tokens: int) -> np.ndarray:
    """A stream in which each pair of tokens occurs once: they are exactly independent."""
    edges = {token: list(range(tokens)) for token in range(tokens)}
    path, stream = [0], []
    while path:
        if edges[path[-1]]:
            path.append(edges[path[-1]].pop())
        else:
            stream.append(path.pop())
    return np.array(stream)


@pytest.mark.parametrize("tokens", [1, 2, 3, 7, 10, 29, 50])
def test_exactly_independent_tokens_have_rank_one(tokens: int) -> None:
    found = cooccurrence(stream_of_all_pairs(tokens))
    assert found["pairs"] == tokens**2
    assert set(ranks(found["normalised"]).values()) == {1}
    assert all(rank["exact"] for rank in found["normalised"])
    assert found["chance_energy"] == 1


def test_rounding_takes_no_rank_past_the_tokens() -> None:
    values = np.array([0.6, 0.8])
    found = statistics._ranks(values, 1 + 1e-2, tokens=2)
    assert found[-1] == {"energy": 0.999, "rank": 2, "exact": True}
    unseen = statistics._ranks(values, 1 + 1e-2, tokens=9)
    assert unseen[-1] == {"energy": 0.999, "rank": 3, "exact": False}


def test_chance_is_what_independent_tokens_show_on_average() -> None:
    ids = np.array([0, 1, 2] * 8 + [0, 0, 1])
    table = pair_counts(ids).toarray()
    shares = table / table.sum()
    excess = (shares**2 / np.outer(shares.sum(1), shares.sum(0))).sum() - 1
    expected = (3 - 1) * (3 - 1) / (len(ids) - 1) / excess
    assert 0 < expected < 1
    assert cooccurrence(ids)["chance_energy"] == pytest.approx(expected)


def test_stretches_come_from_the_whole_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "PAIRS_LOOKED_AT", 640)
    counts = pair_counts(np.arange(64_000) // 1000).toarray()
    assert np.array_equal(counts, 9 * np.eye(64))  # ten tokens of each thousand


def sampled(parts: list[np.ndarray], columns: int = 1) -> EvenSample:
    sample = EvenSample(parts[0].dtype.str, columns)
    for part in parts:
        sample.add(part.tobytes())
    return sample


def splitmix64(number: int) -> int:
    """Output `number` of the generator of Steele et al. 2014 with seed 0, in Python integers."""
    mask = (1 << 64) - 1
    mixed = (number + 1) * 0x9E3779B97F4A7C15 & mask
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & mask
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & mask
    return mixed ^ (mixed >> 31)


def test_few_values_are_all_kept() -> None:
    values = np.arange(1000.0)
    assert sampled([values]).values[:, 0].tolist() == values.tolist()


def test_values_are_kept_by_the_hash_of_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "SAMPLE_UNITS", 300)
    hashes = [splitmix64(number) for number in range(2000)]
    assert hashes[0] == 0xE220A8397B1DCDAF
    halvings = next(n for n in range(64) if sum(value < 1 << (64 - n) for value in hashes) <= 300)
    expected = [number for number, value in enumerate(hashes) if value < 1 << (64 - halvings)]
    assert sampled([np.arange(2000.0)]).values[:, 0].tolist() == expected


@given(cuts=st.lists(st.integers(0, 3000)))
def test_the_sample_does_not_depend_on_blocks(cuts: list[int]) -> None:
    values = np.arange(3000.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "SAMPLE_UNITS", 200)
        whole, parts = sampled([values]), sampled(np.split(values, sorted(cuts)))
    assert 50 < len(whole.values) <= 200
    assert whole.values.tolist() == parts.values.tolist()


@pytest.mark.parametrize("width", [3, 32, 34, 144, 1000, 1024])
def test_every_column_of_an_image_is_met_alike(width: int) -> None:
    columns = np.tile(np.arange(width, dtype="<u4"), 2_000_000 // width)
    found = sampled(np.array_split(columns, 7)).values[:, 0]
    assert statistics.SAMPLE_UNITS / 3 < len(found) <= statistics.SAMPLE_UNITS
    counts, expected = np.bincount(found, minlength=width), len(found) / width
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_values_of_several_columns_stay_together() -> None:
    pixels = np.arange(900_000, dtype="<u4")
    found = sampled([pixels], 3).values
    assert (found[:, 1:] == found[:, :1] + [1, 2]).all()
    assert (found[:, 0] % 3 == 0).all()


@pytest.mark.parametrize("order", [1, -1])
def test_the_extremes_are_those_of_all_blocks(order: int) -> None:
    values = np.arange(1_000_000.0)[::order]
    sample = sampled(np.array_split(values, 77))
    assert (sample.lowest, sample.highest) == (0, 999_999)
