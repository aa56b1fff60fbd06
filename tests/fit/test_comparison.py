"""Networks of equal size that read different tokens, in bits per byte."""

import math

import numpy as np
import pytest
from scipy import stats

from archfit.fit.comparison import Comparison
from archfit.fit.conclusions import conclusions
from archfit.fit.document import document_of
from archfit.fit.fitted import Fits, fitted
from archfit.spec import Architecture, Patches, RunRecord
from tests_curves import DATA, OTHER_DATA, record, shape

GIVEN = shape(6, 200, vocab=257)
DEEPER = shape(12, 142, vocab=257)
PATCHED = shape(6, 196, vocab=257, input=Patches(vocab=257, size=2, encoding="one-hot"))
LARGER = shape(6, 190, vocab=1000)


def runs(architecture: Architecture, losses: list[float], data_hash: str = DATA) -> list[RunRecord]:
    return [
        record(architecture, loss, seed, data_hash=data_hash) for seed, loss in enumerate(losses)
    ]


def found(*groups: list[RunRecord]) -> tuple[Fits, Comparison]:
    fits = fitted([one for group in groups for one in group])
    (comparison,) = fits.comparisons
    return fits, comparison


def test_the_best_comes_first_and_the_others_by_how_much_they_are_worse() -> None:
    given, larger = [3.0, 3.02, 3.01], [2.9, 2.91, 2.92]
    fits, comparison = found(
        runs(GIVEN, given), runs(LARGER, larger, OTHER_DATA), runs(PATCHED, [3.3, 3.31, 3.32])
    )
    shapes = [standing.cell.architecture for standing in comparison.standings]
    assert shapes == [LARGER, GIVEN, PATCHED]
    bits = 1 / math.log(2) / 3  # a byte, for a nat per token of the simulated data
    second = comparison.standings[1]
    assert second.difference == pytest.approx(0.1 * bits)
    error = 0.01 * bits * math.sqrt(2 / 3)  # every cell has a standard deviation of 0.01
    half = stats.t.ppf(0.95, 6) * error
    assert (second.low, second.high) == pytest.approx((0.1 * bits - half, 0.1 * bits + half))
    assert second.is_settled
    (sentence,) = (line for line in conclusions(fits) if line.startswith("Of networks"))
    assert "depth 6 with vocabulary 1,000 is best" in sentence
    assert "tokens of a patch are predicted at once" in sentence
    assert [row["vocab"] for row in document_of(fits)["comparisons"][0]["standings"]] == [  # type: ignore[index]
        1000,
        257,
        257,
    ]


def test_what_cannot_be_told_from_the_best_is_undecided() -> None:
    fits, comparison = found(
        runs(GIVEN, [3.0, 3.1, 2.9]), runs(LARGER, [2.98, 3.08, 2.88], OTHER_DATA)
    )
    second = comparison.standings[1]
    assert not second.is_settled
    assert second.seeds_needed is not None
    assert second.seeds_needed > 100
    assert any("undecided among 2: about" in line for line in conclusions(fits))


def test_depths_alone_and_networks_of_other_sizes_are_no_comparison() -> None:
    depths = [*runs(GIVEN, [3.0, 3.01, 3.02]), *runs(DEEPER, [3.1, 3.11, 3.12])]
    assert fitted(depths).comparisons == ()
    half = runs(shape(6, 128, vocab=1000), [2.9, 2.91, 2.92], OTHER_DATA)
    assert fitted([*depths, *half]).comparisons == ()


def test_intervals_hold_the_truth_as_often_as_they_should() -> None:
    random, covered, bits = np.random.default_rng(0), 0, 1 / math.log(2) / 3
    for _ in range(200):
        losses = random.normal(0, 0.02, (3, 3)) + np.array([[2.8], [3.0], [3.1]])
        one, two, three = losses.tolist()
        _, comparison = found(runs(LARGER, one, OTHER_DATA), runs(GIVEN, two), runs(PATCHED, three))
        covered += sum(
            standing.low <= truth * bits <= standing.high
            for standing, truth in zip(comparison.standings[1:], (0.2, 0.3), strict=True)
        )
    assert 0.85 < covered / 400 < 0.95


def test_many_seeds_of_one_cell_are_an_answer_and_few_are_none() -> None:
    losses = [3.0, 3.01, 2.99, 3.02, 2.98]
    sentences = conclusions(fitted(runs(GIVEN, losses)))
    std = np.std(losses, ddof=1)
    assert any(f"depth 6, width 200 {std:.2e} (5 seeds)" in line for line in sentences)
    with pytest.raises(ValueError, match="intervals need 4 repeats"):
        fitted(runs(GIVEN, losses[:3]))


def test_of_six_equal_networks_few_are_said_to_be_worse_than_the_best() -> None:
    """The best of six is best by luck, and the worst by far more than one interval allows for."""
    random, wrong = np.random.default_rng(0), 0
    shapes = [shape(6, 196, heads=heads, vocab=257) for heads in (1, 2, 4, 7, 14)]
    for _ in range(200):
        losses = random.normal(3, 0.02, (6, 3)).tolist()
        groups = [runs(one, own) for one, own in zip(shapes, losses, strict=False)]
        _, comparison = found(*groups, runs(LARGER, losses[-1], OTHER_DATA))
        wrong += any(standing.is_settled for standing in comparison.standings)
    assert wrong / 200 < 0.13


def test_a_noisy_network_is_pooled_apart() -> None:
    quiet = [3.0, 3.001, 3.002]
    _, comparison = found(
        runs(GIVEN, quiet),
        runs(DEEPER, [loss + 0.1 for loss in quiet]),
        runs(LARGER, [loss + 0.2 for loss in quiet], OTHER_DATA),
        runs(PATCHED, [3.2, 3.5, 3.8]),
    )
    lengths = [standing.high - standing.low for standing in comparison.standings[1:]]
    assert lengths[2] > 100 * lengths[0]


def test_losses_of_zero_are_no_comparison() -> None:
    with pytest.raises(ValueError, match="intervals need 4 repeats"):
        fitted([*runs(GIVEN, [0.0] * 3), *runs(LARGER, [0.0] * 3, OTHER_DATA)])
