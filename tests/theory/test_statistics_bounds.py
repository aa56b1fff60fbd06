"""The bound that holds: against its definition, the space it counts, and real networks."""

import json
from itertools import combinations_with_replacement
from math import comb
from pathlib import Path

import numpy as np
import pytest

from archfit.theory.arithmetic import interaction_count, multiset, symmetric_entries
from archfit.theory.bounds import bounds_report
from archfit.theory.shape import Shape
from archfit.theory.statistics_bounds import (
    best_split,
    degree_upper_bounds,
    statistics_upper_bound,
    statistics_upper_bound_positions,
    statistics_upper_bound_short,
    statistics_upper_bound_vocabulary,
)
from tests_network import PRIME, random_matrix, random_weights, rank, separation_rank


@pytest.mark.parametrize("width", range(1, 8))
@pytest.mark.parametrize("depth", range(1, 5))
def test_fast_form_equals_the_sum_over_degrees(depth: int, width: int) -> None:
    m, C = symmetric_entries(width), interaction_count(depth)
    by_degree = sum(min(width * multiset(m, k), multiset(m, C - k)) for k in range(C + 1))
    assert int(statistics_upper_bound(depth, width)) == by_degree


@pytest.mark.parametrize("factor", [1, 2, 7, 1000])
@pytest.mark.parametrize("variables", [1, 2, 3, 8])
@pytest.mark.parametrize("total", [1, 4, 13, 40])
def test_best_split_is_the_best_of_all_splits(factor: int, variables: int, total: int) -> None:
    def value(k: int) -> int:
        return factor * multiset(variables, k) + multiset(variables, total - 1 - k)

    assert best_split(factor, variables, total) == min(value(k) for k in range(-1, total + 1))


def test_best_split_finds_the_optimum_among_astronomically_many() -> None:
    """At depth 60 there are 2e28 splits; the neighbours of the one found are no better."""
    v, C = symmetric_entries(3) + 1, interaction_count(60)
    best = int(statistics_upper_bound(60, 3))
    for k in range(C // 2 - 10, C // 2 + 10):
        assert 3 * multiset(v, k) + multiset(v, C - 1 - k) >= best
    assert best == best_split(3, v, C)


def _moments(x: np.ndarray) -> list[int]:
    d = len(x)
    s = x @ x.T % PRIME
    return [int(s[a, b]) for a, b in combinations_with_replacement(range(d), 2)]


def _monomials(values: list[int], degree: int) -> list[int]:
    out = []
    for chosen in combinations_with_replacement(values, degree):
        product = 1
        for value in chosen:
            product = product * value % PRIME
        out.append(product)
    return out


@pytest.mark.parametrize(
    ("width", "positions", "degree"), [(2, 1, 2), (2, 2, 3), (3, 1, 2), (3, 2, 3), (4, 2, 2)]
)
def test_counted_polynomials_are_the_independent_ones(
    width: int, positions: int, degree: int
) -> None:
    """D_Q and D_P of the short-sequence bound, against ranks of evaluated polynomials."""
    from archfit.theory.statistics_bounds import _with_own_vector, _without

    rng = np.random.default_rng(1)
    points = [random_matrix(rng, width, positions) for _ in range(260)]
    without = [_monomials(_moments(x), degree) for x in points]
    own = [
        [int(c) * q % PRIME for c in x[:, 0] for q in row]
        for x, row in zip(points, without, strict=True)
    ]
    assert rank(without) == _without(width, positions, degree)
    assert rank(own) == _with_own_vector(width, positions, degree)


@pytest.mark.parametrize(
    ("depth", "width", "heads", "side"), [(1, 3, 1, 2), (2, 2, 1, 1), (2, 2, 1, 2), (2, 3, 1, 1)]
)
def test_one_head_reaches_the_bound(depth: int, width: int, heads: int, side: int) -> None:
    bound = statistics_upper_bound_short(depth, width, side, side)
    weights = random_weights(np.random.default_rng(2), depth, width, heads, width // heads)
    assert separation_rank(weights, width, side, side, samples=bound + 4) == bound


def test_long_sides_give_the_bound_for_every_length() -> None:
    assert statistics_upper_bound_short(3, 4, 4, 9) == int(statistics_upper_bound(3, 4))


def test_one_position_a_side_has_a_closed_form() -> None:
    C = interaction_count(3)
    closed = sum(min(multiset(5, 2 * k + 1), multiset(5, 2 * (C - k))) for k in range(C + 1))
    assert statistics_upper_bound_short(3, 5, 1, 1) == closed


def test_a_vocabulary_as_large_as_the_moments_changes_nothing() -> None:
    assert int(statistics_upper_bound_vocabulary(3, vocab=7, embedding_rank=3)) == best_split(
        3, 7, interaction_count(3)
    )
    assert int(statistics_upper_bound_vocabulary(3, vocab=700, embedding_rank=3)) == (
        int(statistics_upper_bound(3, 3))
    )


def test_a_side_with_one_token_can_say_only_which() -> None:
    assert int(statistics_upper_bound_vocabulary(9, 40, 30, inside=1, outside=1)) == 40


def test_positions_only_add() -> None:
    for rank_ in range(1, 5):
        without = int(statistics_upper_bound(3, rank_))
        assert int(statistics_upper_bound_positions(3, rank_, 1)) > without


VECTORS = json.loads((Path(__file__).parent / "theory_vectors.json").read_text())
MEASURED = [v for v in VECTORS if v["quantity"] == "sep_rank" and v["inputs"]["mask"] == "none"]


@pytest.mark.parametrize("vector", MEASURED, ids=lambda vector: vector["id"])
def test_measured_ranks_lie_between_the_bounds(vector: dict[str, object]) -> None:
    given, measured = vector["inputs"], vector["expected"]
    assert isinstance(given, dict)
    assert isinstance(measured, int)
    shape = Shape(
        depth=given["L"],
        width=given["d_x"],
        heads=given["H"],
        positions=given["N"],
        vocab=given.get("V"),
        rank=given.get("r"),
        position_rank=given.get("r_e", 0),
        residual=bool(given["residual"]),
    )
    report = bounds_report(shape)
    assert report.lower.exact is not None
    assert report.upper.exact is not None
    assert report.lower.exact <= measured <= report.upper.exact


def test_large_binomials_agree_with_the_standard_library() -> None:
    assert multiset(30, 50) == comb(79, 50)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "width", "heads", "side", "measured"),
    [(2, 3, 1, 2, 49), (2, 3, 3, 2, 43), (2, 4, 1, 2, 110), (2, 4, 2, 2, 107), (2, 4, 4, 2, 85)],
)
def test_measured_ranks_of_the_specification_lie_between_the_bounds(
    depth: int, width: int, heads: int, side: int, measured: int
) -> None:
    """Run in full, N x N scores and all: more heads at one width lower the rank."""
    weights = random_weights(np.random.default_rng(4), depth, width, heads, width // heads)
    assert separation_rank(weights, width, side, side, samples=measured + 4) == measured
    report = bounds_report(Shape(depth=depth, width=width, heads=heads, positions=2 * side))
    assert report.lower.log3 <= report.upper.log3
    assert report.upper.exact is not None
    assert measured <= report.upper.exact


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("rank_", [1, 2, 3])
def test_over_a_vocabulary_the_least_of_three_counts_is_taken(depth: int, rank_: int) -> None:
    """The splits of the statistics, and the ways to fill either side; whichever is smallest."""
    C = interaction_count(depth)
    for vocab in (rank_, rank_ + 1, 6, 9):
        split = best_split(rank_, min(vocab, symmetric_entries(rank_) + 1), C)
        for inside in (1, 2, 5, 9):
            for outside in (1, 3, 8):
                wanted = min(split, vocab * multiset(vocab, inside - 1), multiset(vocab, outside))
                found = int(statistics_upper_bound_vocabulary(depth, vocab, rank_, inside, outside))
                assert found == wanted
        assert int(statistics_upper_bound_vocabulary(depth, vocab, rank_, 2)) == min(
            split, vocab**2
        )


def test_fillings_of_a_million_digits_are_left_out() -> None:
    long = int(statistics_upper_bound_vocabulary(2, 10**9, 2, inside=10**9, outside=10**9))
    assert long == int(statistics_upper_bound(2, 2))


def test_a_sum_over_too_many_partitions_is_refused_and_a_shorter_one_is_not() -> None:
    assert degree_upper_bounds(4, 9, 2, 9)[0] == 9
    with pytest.raises(ValueError, match="a side of 5 positions, shorter than a width of 9"):
        degree_upper_bounds(6, 9, 5, 9)


@pytest.mark.parametrize(("total", "parts"), [(6, 2), (7, 7), (9, 3), (4, 9)])
def test_partitions_are_counted_as_they_are_listed(total: int, parts: int) -> None:
    from archfit.theory.statistics_bounds import _partition_count, _partitions

    listed = [list(_partitions(size, parts, size)) for size in range(total + 1)]
    assert _partition_count(total, parts) == sum(map(len, listed))
    for size, all_of_size in enumerate(listed):
        assert all(sum(la) == size and len(la) <= parts for la in all_of_size)
        assert all(list(la) == sorted(la, reverse=True) for la in all_of_size)
        assert len(set(all_of_size)) == len(all_of_size)


@pytest.mark.parametrize("guess", [-1, 0, 7, 19, 20])
def test_the_first_split_is_found_from_any_guess(guess: int) -> None:
    from archfit.theory.statistics_bounds import _first_near

    for first in range(-1, 21):
        assert _first_near(lambda k, first=first: k >= first, guess, 20) == first  # type: ignore[misc]  # a default binds the loop's number
