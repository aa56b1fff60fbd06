"""Pooled noise, cells that are noisier than accident allows, and seeds that settle a question."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from archfit.fit.cells import CellResult, cells_of
from archfit.fit.fitted import fitted
from archfit.fit.noise import Noise, Pool, noise_of, seeds_needed, tail_of_best
from tests_curves import record, shape


def cells(losses: list[list[float]]) -> tuple[CellResult, ...]:
    return cells_of(
        record(shape(2, 32 + 8 * at), loss, seed)
        for at, own in enumerate(losses)
        for seed, loss in enumerate(own)
    )


def pooled(losses: list[list[float]]) -> Noise:
    (noise,) = noise_of(cells(losses))
    return noise


def test_variance_is_pooled_over_cells_of_different_means_and_seeds() -> None:
    noise = pooled([[3.0, 3.2], [2.0, 2.3, 2.6], [1.0]])
    assert noise.usual.degrees == 3
    assert noise.usual.std == pytest.approx(((0.02 + 0.18) / 3) ** 0.5)


@pytest.mark.slow
def test_equal_cells_are_pooled_apart_as_seldom_as_promised() -> None:
    random = np.random.default_rng(0)
    trials = [pooled(random.normal(3, 0.1, (6, 3)).tolist()) for _ in range(2000)]
    apart = sum(bool(noise.noisy.cells) for noise in trials)
    assert 0 < apart < stats.binom.ppf(0.999, 2000, 0.01)


def test_noisy_cells_are_pooled_apart_and_leave_the_others_alone() -> None:
    random = np.random.default_rng(0)
    losses = random.normal(3, 1e-3, (8, 3))
    losses[2] = 3, 3.05, 2.95
    losses[5] = 3, 3.03, 2.97
    noise = pooled(losses.tolist())
    quiet = np.delete(losses, [2, 5], axis=0)
    assert noise.usual.std == pytest.approx(np.sqrt(quiet.var(axis=1, ddof=1).mean()))
    assert noise.noisy.std == pytest.approx(np.sqrt((0.05**2 + 0.03**2) / 2))
    assert (noise.usual.degrees, noise.noisy.degrees) == (12, 4)


def test_t_is_that_of_the_degrees_and_of_welch_for_cells_of_both_pools() -> None:
    noise = pooled([[1, 2, 3], [1, 2, 3]])
    assert noise.t(*noise.cells) == pytest.approx(stats.t.ppf(0.95, 4))
    random = np.random.default_rng(1)
    losses = random.normal(3, 1e-3, (6, 3))
    losses[0] = 3, 3.05, 2.95
    noise = pooled(losses.tolist())
    quiet, (noisy,) = noise.usual.cells[0], noise.noisy.cells
    first, second = noise.usual.std**2 / 3, noise.noisy.std**2 / 3
    degrees = (first + second) ** 2 / (first**2 / 10 + second**2 / 2)
    assert noise.t(quiet, noisy) == pytest.approx(stats.t.ppf(0.95, degrees))
    assert noise.error(quiet, noisy) == pytest.approx((first + second) ** 0.5)


def test_pools_of_equally_many_degrees_are_still_two() -> None:
    first, second, third, fourth = cells([[1, 2, 3], [1, 2, 3], [10, 20, 30], [10, 20, 30]])
    usual, noisy = Pool(cells=(first, second)), Pool(cells=(third, fourth))
    noise = replace(pooled([[1, 2, 3]]), usual=usual, noisy=noisy)
    parts = noise.variance(first), noise.variance(third)
    degrees = sum(parts) ** 2 / sum(part**2 / 4 for part in parts)
    assert noise.t(first, third) == pytest.approx(stats.t.ppf(0.95, degrees), rel=1e-12)
    assert noise.t(first, third) < stats.t.ppf(0.95, 4)


def test_equal_losses_make_no_intervals() -> None:
    assert not pooled([[3.0, 3.0, 3.0]] * 4).is_enough
    same = [record(shape(2, 64, heads=heads), 3.0, seed) for heads in (1, 2) for seed in range(3)]
    with pytest.raises(ValueError, match="4 runs repeat others and have the very same losses"):
        fitted(same)


@pytest.mark.parametrize("tail", [0.05, 0.1 / 30])  # of two candidates, and of six
@pytest.mark.parametrize("effect", [0.6, 1.0, 1.5])
def test_so_many_seeds_settle_it_in_four_of_five_trials(effect: float, tail: float) -> None:
    error_of_three = (2 / 3) ** 0.5  # of a difference of two means, each run of deviation 1
    needed = seeds_needed(effect, error_of_three, 3, tail=tail)
    assert needed is not None
    random = np.random.default_rng(0)
    means = random.normal(effect, (2 / needed) ** 0.5, 20_000)
    settled = float((np.abs(means) > stats.norm.isf(tail) * (2 / needed) ** 0.5).mean())
    assert 0.79 <= settled <= 0.90  # rounded up to whole seeds


def test_no_effect_needs_more_than_anybody_has() -> None:
    assert seeds_needed(0.0, 1.0, 3) is None
    assert seeds_needed(1e-3, 1.0, 3) is None


def test_seeds_needed_are_those_of_the_normal_law() -> None:
    """n so that effect / (error sqrt(3 / n)) reaches the quantiles of 95 % and 80 %."""
    enough = stats.norm.ppf(0.95) + stats.norm.ppf(0.8)
    assert seeds_needed(1.0, 2.0, 3) == math.ceil(3 * (enough * 2.0) ** 2)
    assert seeds_needed(-1.0, 2.0, 3) == seeds_needed(1.0, 2.0, 3)
    assert seeds_needed(9.0, 0.1, 3) == 2  # one seed has no spread
    most = enough * math.sqrt(1 / 1000)  # the effect that takes 1,000 seeds of error 1
    assert seeds_needed(most * 1.0001, 1.0, 1) == 1000
    assert seeds_needed(most * 0.9999, 1.0, 1) is None


@pytest.mark.parametrize(("candidates", "tail"), [(2, 0.05), (3, 0.1 / 6), (6, 0.1 / 30)])
def test_the_tail_of_the_best_is_divided_among_all_pairs(candidates: int, tail: float) -> None:
    assert tail_of_best(candidates) == pytest.approx(tail)


def test_four_degrees_of_freedom_are_enough_for_intervals_and_three_are_not() -> None:
    assert pooled([[3.0, 3.1]] * 4).is_enough
    assert not pooled([[3.0, 3.1]] * 3).is_enough


def squares_at(probability: float, cells: int, seeds: int) -> float:
    """The sum of squares of one cell, over that of each other, which accident exceeds so often."""
    share = stats.beta.isf(probability / cells, (seeds - 1) / 2, (cells - 1) * (seeds - 1) / 2)
    return float(share / (1 - share) * (cells - 1))


@pytest.mark.parametrize(("probability", "is_apart"), [(0.0099, True), (0.0101, False)])
def test_a_cell_is_pooled_apart_below_a_probability_of_one_percent(
    probability: float, is_apart: bool
) -> None:
    """Bonferroni over six cells of three seeds; a share of the squares has a beta distribution."""
    factor = math.sqrt(squares_at(probability, 6, 3))
    quiet = [3.0, 3.001, 2.999]
    noisy = [3.0, 3.0 + 0.001 * factor, 3.0 - 0.001 * factor]
    noise = pooled([quiet] * 5 + [noisy])
    assert bool(noise.noisy.cells) == is_apart
    assert noise.usual.degrees == (10 if is_apart else 12)


def test_few_cells_or_few_seeds_cannot_say_that_one_is_noisy() -> None:
    quiet, wild = [3.0, 3.001, 2.999], [3.0, 4.0, 2.0]
    assert not pooled([[*quiet, 3.0], [*wild, 3.0]]).noisy.cells  # which of two is the usual one?
    assert not pooled([wild, quiet, [3.0, 3.001]]).noisy.cells  # three degrees are left
    assert not pooled([[*wild, 3.0], [*quiet, 3.0], [3.0], [3.1], [3.2]]).noisy.cells
    assert pooled([wild, quiet, quiet]).noisy.cells
    assert not pooled([[3.0, 3.0, 3.0]] * 5).noisy.cells
