"""Pooled noise, and cells that are noisier than accident allows."""

import numpy as np
import pytest
from scipy import stats

from archfit.fit.cells import Cell, cells_of
from archfit.fit.noise import Noise, noise_of
from tests_curves import record, shape


def cells(losses: list[list[float]]) -> tuple[Cell, ...]:
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
    assert noise.degrees == 3
    assert noise.std == pytest.approx(((0.02 + 0.18) / 3) ** 0.5)


def test_equal_cells_are_called_uneven_as_seldom_as_promised() -> None:
    random = np.random.default_rng(0)
    found = [pooled(random.normal(3, 0.1, (6, 3)).tolist()).largest_probability for _ in range(400)]
    below = sum(probability < 0.1 for probability in found)
    assert stats.binomtest(below, 400, 0.1).pvalue > 1e-3


def test_one_noisy_cell_is_noticed() -> None:
    random = np.random.default_rng(0)
    losses = random.normal(3, 1e-3, (8, 3))
    losses[2] = 3, 3.05, 2.95
    noise = pooled(losses.tolist())
    assert noise.is_uneven
    assert noise.largest_ratio == pytest.approx(8**0.5, rel=0.01)


def test_t_is_that_of_the_degrees() -> None:
    assert pooled([[1, 2, 3], [1, 2, 3]]).t90 == pytest.approx(stats.t.ppf(0.95, 4))


def test_equal_losses_make_no_intervals() -> None:
    assert not pooled([[3.0, 3.0, 3.0]] * 4).is_enough
