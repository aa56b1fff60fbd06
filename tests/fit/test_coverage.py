"""Intervals hold the truth as often as they say, on simulated runs with the papers' noise.

Trials are numbered and a number makes the same noise everywhere, so nothing here is by luck.
"""

import pytest
from scipy import stats

from tests_coverage import (
    CROSSINGS,
    EQUAL_CURVES,
    LAWS,
    REDUNDANCIES,
    coverages,
    no_crossing_share,
)

ALL = CROSSINGS | REDUNDANCIES | LAWS
QUICK = (
    "rank, the papers' widths, 25 %",
    "size law, alpha 0.4, 6 sizes",
)
SEEDS = (3, 5)


@pytest.mark.parametrize("name", QUICK)
def test_of_sixty_intervals_about_ninety_percent_hold_the_truth(name: str) -> None:
    for found in coverages(ALL[name], seeds=3, trials=60).values():
        covered = round(found.covered * len(found.outcomes))
        assert stats.binomtest(covered, len(found.outcomes), 0.9).pvalue > 0.005
        assert abs(found.bias) < 0.15


@pytest.mark.slow
def test_in_fifty_trials_equal_curves_hardly_ever_cross() -> None:
    truth = EQUAL_CURVES["quadratics, 5 sizes"]
    assert no_crossing_share(truth, seeds=3, trials=50) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("name", ALL)
def test_in_400_trials_coverage_is_85_to_95_percent_and_bias_a_tenth(name: str, seeds: int) -> None:
    for found in coverages(ALL[name], seeds=seeds, trials=400).values():
        assert found.answered >= 0.99
        assert 0.85 <= found.covered <= 0.95
        assert abs(found.bias) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("name", EQUAL_CURVES)
def test_in_400_trials_equal_curves_do_not_cross_in_ninety_percent(name: str, seeds: int) -> None:
    assert no_crossing_share(EQUAL_CURVES[name], seeds=seeds, trials=400) >= 0.9
