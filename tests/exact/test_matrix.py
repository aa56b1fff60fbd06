"""Samples: of the rank asked for, all fillings once, and the same for the same seed."""

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from archfit.exact.experiment import MOST_LISTED, divided, fillings
from archfit.exact.matrix import Sides, sample_sides
from tests_experiments import experiment, field
from tests_network import PRIME, rank


def sides_of(samples: int = 20, seed: int = 0, **more: Any) -> Sides:
    return sample_sides(experiment(**more), field(PRIME), samples=samples, seed=seed)


def span(vectors: np.ndarray) -> int:
    """Rank of the vectors, which are rows."""
    return rank([[int(value) % PRIME for value in vector] for vector in vectors])


@pytest.mark.parametrize(("width", "r"), [(4, 4), (4, 2), (5, 1)])
def test_all_vectors_together_have_the_rank_of_the_embedding(width: int, r: int) -> None:
    sides = sides_of(L=1, d=width, r=r, N=5)
    both = np.concatenate([sides.inside, sides.outside])
    assert span(both.swapaxes(1, 2).reshape(-1, width)) == r


def test_positional_vectors_have_their_rank_and_stay_the_same_for_every_sample() -> None:
    """Differences of two samples at a position have the rank r of the inputs; the vectors of
    all positions r + r_e."""
    sides = sides_of(L=1, d=6, r=2, r_e=3, N=8)
    vectors = np.concatenate([sides.inside, sides.outside]).swapaxes(1, 2)
    assert span((vectors[:, 1:] - vectors[:, :1]).reshape(-1, 6)) == 2
    assert span(vectors.reshape(-1, 6)) == 5


def tokens(vectors: np.ndarray) -> list[tuple[int, ...]]:
    """Each sample's tokens, named in the order in which their vectors appear."""
    names: dict[tuple[float, ...], int] = {}
    return [
        tuple(names.setdefault(tuple(vector), len(names)) for vector in sample)
        for sample in vectors.transpose(2, 0, 1)
    ]


def test_fillings_that_differ_in_order_alone_are_listed_once() -> None:
    sides = sides_of(L=2, d=2, V=3, N=6, side=(0, 1, 2), output=1)
    inside, outside = tokens(sides.inside), tokens(sides.outside)
    assert len({tuple(sorted(t)) for t in outside}) == len(outside) == 10  # multisets of 3 of 3
    own_and_rest = {(t[1], tuple(sorted((t[0], t[2])))) for t in inside}
    assert len(own_and_rest) == len(inside) == 18  # own token, and multisets of 2 of 3


@pytest.mark.parametrize("more", [{"causal": True}, {"r_e": 1}])
def test_where_order_matters_all_fillings_are_listed(more: dict[str, Any]) -> None:
    sides = sides_of(L=1, d=3, V=2, N=6, **more)
    assert sides.inside.shape[2] == sides.outside.shape[2] == 8
    if "causal" in more:
        found = Counter(tokens(sides.outside))
        assert found == Counter(product(range(2), repeat=3))


def test_of_too_many_fillings_as_many_as_are_listed_at_most_are_drawn() -> None:
    sides = sides_of(L=1, d=2, V=50, N=6)
    assert sides.inside.shape[2] == sides.outside.shape[2] == MOST_LISTED


def test_fillings_are_counted_as_they_are_listed() -> None:
    for vocab, positions, own in product((2, 3, 4), (1, 2, 4), (True, False)):
        strings = product(range(vocab), repeat=positions)
        classes = {(s[0] if own else None, tuple(sorted(s[own:]))) for s in strings}
        assert fillings(vocab, positions, own, False) == len(classes)
        assert fillings(vocab, positions, own, True) == vocab**positions


def test_the_same_seed_gives_the_same_samples_and_another_others() -> None:
    one, same, other = (sides_of(L=1, d=2, seed=seed).inside for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()


def test_sides_that_do_not_cover_the_positions_are_refused() -> None:
    for side in ((0, 0), (), (0, 1, 2, 3), (0, 4), (-1,)):
        with pytest.raises(ValueError, match="do not cover positions"):
            divided(4, side, 1)


def test_a_table_has_no_more_rank_than_tokens() -> None:
    with pytest.raises(ValueError, match="rank=3 is above vocab=2"):
        experiment(1, 4, V=2, r=3)
    with pytest.raises(ValueError, match="vocab=1 is below 2"):
        experiment(1, 4, V=1, r=1)


def test_many_positions_have_no_more_orders_than_a_float_holds() -> None:
    assert fillings(3, 64, False, True) == fillings(3, 65, False, True) == 3**64


def test_a_rank_as_large_as_the_vocabulary_is_taken() -> None:
    assert experiment(1, 4, V=2, r=2).rank == 2
