"""Seeds that would settle a question, against trials with so many."""

import numpy as np
import pytest
from scipy import stats

from archfit.fit.power import seeds_needed


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
