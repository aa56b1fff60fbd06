"""What bottlenecks cost, in parameters."""

import math
from dataclasses import replace

import numpy as np
import pytest

from archfit.fit.fitted import Fits, fitted
from archfit.report.conclusions import conclusions
from archfit.spec import Architecture, Factorised, Tokens
from tests_curves import power_law, shape, simulated, widths

CURVE = power_law(2.0, 1.0, 0.2)
BASELINE = [shape(6, width) for width in widths(6, 1e6, 1e7, 7)]


def saved_by_rank(architecture: Architecture) -> float:
    inner = getattr(architecture.embedding, "inner", architecture.width)
    return 0.3 * max(0.0, 1 - inner / architecture.width)


def saved_by_ratio(architecture: Architecture) -> float:
    return {1: 0.0, 4: 0.25, 16: 0.45}[round(architecture.attention_ratio)]


def found(shapes: list[Architecture], saved: object, std: float = 1e-6) -> Fits:
    assert callable(saved)

    def loss(architecture: Architecture) -> float:
        return CURVE(math.log(architecture.block_params * (1 - saved(architecture))))

    random = np.random.default_rng(0)
    return fitted(simulated(shapes, loss, std=std, seeds=3, random=random))


def test_almost_without_noise_the_rank_curve_is_exact_and_controls_cost_nothing() -> None:
    cells = [shape(6, 300, embedding=Factorised(inner=inner)) for inner in (15, 60, 300, 400)]
    items = found([*BASELINE, *cells], saved_by_rank).redundancy
    assert [item.ratio for item in items] == [0.05, 0.2, 1.0, 1.0]
    expected = [0.285, 0.24, 0.0, 0.0]
    assert [item.estimate.value for item in items] == pytest.approx(expected, abs=1e-4)
    assert all(item.bottleneck == ("embedding",) for item in items)


def test_which_tables_are_limited_makes_different_curves() -> None:
    inner = Factorised(inner=30)
    cells = [
        shape(6, 300, embedding=inner),
        shape(6, 300, embedding=inner, positions=inner),
        shape(6, 300, head=inner),
    ]
    items = found([*BASELINE, *cells], saved_by_rank, std=1e-3).redundancy
    kinds = [item.bottleneck for item in items]
    assert sorted(kinds) == [("embedding",), ("embedding", "positions"), ("head",)]


def test_attention_is_measured_against_the_best_depth_of_the_usual_one() -> None:
    worse = [shape(12, width) for width in widths(12, 1e6, 1e7, 7)]
    wide = [shape(6, 144, heads=12, head_dim=48), shape(6, 72, heads=24, head_dim=48)]

    def saved(architecture: Architecture) -> float:
        return saved_by_ratio(architecture) + 0.1 * (architecture.depth == 12)

    items = found([*BASELINE, *worse, *wide], saved).redundancy
    assert [round(item.ratio) for item in items] == [4, 16]
    assert [item.estimate.value for item in items] == pytest.approx([0.25, 0.45], abs=1e-4)
    assert items[0].baseline_depths == (6, 12)


def test_of_several_depths_of_a_ratio_the_best_is_marked() -> None:
    wide = [shape(6, 144, heads=12, head_dim=48), shape(12, 108, heads=12, head_dim=36)]

    def saved(architecture: Architecture) -> float:
        return saved_by_ratio(architecture) + 0.1 * (architecture.depth == 12)

    items = found([*BASELINE, *wide], saved).redundancy
    assert {item.family.depth: item.is_best_depth for item in items} == {6: True, 12: False}


def test_a_cell_worse_than_every_baseline_is_at_least_so_redundant() -> None:
    smallest = BASELINE[0].block_params
    cell = shape(6, 130, embedding=Factorised(inner=2))
    fits = found([*BASELINE, cell], lambda a: 0.5 * isinstance(a.embedding, Factorised))
    (item,) = fits.redundancy
    assert item.estimate.value is None
    assert item.estimate.high is None
    assert item.estimate.low == pytest.approx(1 - smallest / cell.block_params, abs=0.2)
    assert any("at least" in line and "is better" in line for line in conclusions(fits))


def test_a_baseline_whose_vocabulary_is_smaller_than_its_width_is_flagged() -> None:
    shapes = [shape(6, width, vocab=200) for width in widths(6, 1e6, 1e7, 5)]
    shapes.append(shape(6, 300, vocab=200, embedding=Factorised(inner=30)))
    fits = found(shapes, saved_by_rank, std=1e-3)
    (item,) = fits.redundancy
    assert item.baseline_is_limited
    largest = max(one.width for one in shapes)
    enough = [replace(one, input=Tokens(vocab=largest)) for one in shapes]
    assert not found(enough, saved_by_rank, std=1e-3).redundancy[0].baseline_is_limited
    assert any("limited by their vocabulary" in line for line in conclusions(fits))


def test_the_sentence_has_share_interval_and_seeds() -> None:
    cell = shape(6, 300, embedding=Factorised(inner=15))
    fits = found([*BASELINE, cell], saved_by_rank, std=1e-4)
    (said,) = (line for line in conclusions(fits) if "redundant" in line)
    assert said.startswith("With a rank of 0.05 of the width (embedding), 6 x 300 is 28.")
    assert "% redundant (90 %: 28." in said
    assert said.endswith("; 3 seeds.")


def test_a_cell_smaller_than_every_baseline_is_of_unknown_redundancy() -> None:
    """A lower bound below zero says nothing, and a sentence that says so is shorter."""
    cell = shape(6, 100, embedding=Factorised(inner=2))
    fits = found([*BASELINE, cell], lambda a: 0.5 * isinstance(a.embedding, Factorised))
    (item,) = fits.redundancy
    assert item.estimate.low is not None
    assert item.estimate.low < 0
    assert "6 x 100 is of unknown redundancy: every network without" in conclusions(fits)[0]
