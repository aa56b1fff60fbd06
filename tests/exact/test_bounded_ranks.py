"""Measured ranks of random networks lie between their proved bounds, with a mask and without."""

import random

import pytest

from archfit.exact.experiment import Experiment
from archfit.exact.measure import SMALL_PRIMES, estimate, measure
from tests_experiments import NUMPY, experiment, measured, silent

PRIME = (SMALL_PRIMES[0],)  # a rank modulo any prime is certain as a lower bound


def _random_experiment(chance: random.Random) -> Experiment:
    """Of any kind that a side of at most six positions allows, measured in a second."""
    while True:
        width, vocab = chance.randint(1, 4), chance.choice((None, None, None, 2, 3))
        positions = chance.randint(2, 8 if vocab is None else 6)
        side = chance.sample(range(positions), chance.randint(1, positions - 1))
        largest = min(width, vocab or width)
        found = experiment(
            chance.choice((1, 2, 2, 2, 3)),
            width,
            chance.randint(1, 4),
            positions,
            d_a=chance.randint(1, 4),
            residual=chance.random() < 0.3,
            causal=chance.random() < 0.7,
            V=vocab,
            r=chance.randint(1, largest),
            r_e=chance.choice((0, 0, 0, 1)),
            side=sorted(side) if chance.random() < 0.6 else range(max(1, positions // 2)),
            output=chance.choice((None, chance.randrange(positions))),
        )
        if estimate(found, "cpu").seconds < 0.3:
            return found


def _check(seed: int, cases: int) -> None:
    chance = random.Random(seed)
    exact = 0
    for _ in range(cases):
        found = measure(_random_experiment(chance), NUMPY, primes=PRIME, progress=silent)
        assert (found.lower or 0) <= found.rank <= found.upper, found.experiment
        exact += found.is_exact
    assert exact > cases // 3


def test_ranks_lie_between_their_bounds() -> None:
    _check(0, 50)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
def test_three_hundred_more_ranks_lie_between_their_bounds(seed: int) -> None:
    _check(seed, 50)


@pytest.mark.parametrize(
    ("sizes", "rank"),
    [
        ({"L": 2, "d": 2, "N": 8}, 18),
        ({"L": 2, "d": 3, "N": 8}, 47),
        ({"L": 2, "d": 4, "N": 8}, 98),
        ({"L": 2, "d": 3, "H": 3, "N": 8}, 26),
        ({"L": 2, "d": 4, "H": 2, "N": 8}, 89),
        ({"L": 2, "d": 4, "H": 4, "N": 8}, 43),
        pytest.param({"L": 2, "d": 6, "H": 2, "N": 12}, 322, marks=pytest.mark.slow),
        pytest.param({"L": 2, "d": 6, "N": 12}, 290, marks=pytest.mark.slow),
    ],
)
def test_of_two_layers_the_prefix_bound_is_the_rank(sizes: dict[str, int], rank: int) -> None:
    """More heads can raise it: 322 with two, 290 with one."""
    found = measured(**sizes, causal=True)
    assert (found.rank, found.upper, found.is_exact) == (rank, rank, True)


@pytest.mark.parametrize(
    ("sizes", "rank", "upper", "unmasked"),
    [
        ({"L": 3, "d": 1, "N": 8}, 26, 31, 14),
        ({"L": 3, "d": 2, "H": 2, "N": 8}, 222, 226, 215),
        pytest.param({"L": 3, "d": 2, "N": 8}, 709, 768, 232, marks=pytest.mark.slow),
    ],
)
def test_from_three_layers_on_a_mask_raises_the_rank(
    sizes: dict[str, int], rank: int, upper: int, unmasked: int
) -> None:
    found = measured(**sizes, causal=True)
    assert (found.rank, found.upper) == (rank, upper)
    assert measured(**sizes).rank == unmasked


def test_an_output_that_sees_one_side_has_rank_one() -> None:
    found = measured(2, 2, 1, 6, causal=True, side=range(3), output=1)
    assert (found.rank, found.upper) == (1, 1)


@pytest.mark.slow
def test_three_layers_of_one_head_miss_the_isotropic_deficit() -> None:
    """One position outside shows it alone: multiset(4, 14) = 680 functions of degree 7, less 4.

    With four positions inside they are not what limits the part.
    """
    what = experiment(3, 4, 1, 5, side=range(4))
    found = measure(what, NUMPY, primes=PRIME, progress=silent)
    parts = found.trials[0].parts
    assert parts is not None
    assert parts[6] == 676


def test_with_residuals_a_short_prefix_is_counted_up_to_each_weight() -> None:
    """Weight by weight the two counts gave 148, below the rank."""
    found = measured(3, 2, 2, 6, d_a=1, residual=True, causal=True, side=[0])
    assert found.rank == 150
    assert found.upper is not None
    assert found.rank <= found.upper == 152
