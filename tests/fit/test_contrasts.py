"""Cells of one shape with different tables."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from archfit.fit.conclusions import conclusions
from archfit.fit.contrasts import Contrast
from archfit.fit.fitted import Fits, fitted
from archfit.spec import Architecture, Factorised
from tests_curves import shape, simulated

RANKS = (2, 8, 32)
COST = {"embedding": 0.10, "head": 0.04, "positions": 0.01}  # nats at rank 1


def loss(architecture: Architecture) -> float:
    return 3 + math.fsum(
        cost / getattr(architecture, name).inner
        for name, cost in COST.items()
        if isinstance(getattr(architecture, name), Factorised)
    )


def fits(std: float = 1e-3, seeds: int = 3) -> Fits:
    shapes = [shape(4, 64)]
    for name in COST:
        shapes += [
            replace(shape(4, 64), **{name: Factorised(inner=inner)})  # type: ignore[arg-type]
            for inner in RANKS
        ]
    random = np.random.default_rng(0)
    return fitted(simulated(shapes, loss, std=std, seeds=seeds, random=random))


def cost(found: Fits, table: str, rank: int) -> Contrast:
    (item,) = (
        item
        for item in found.contrasts
        if (item.kind, item.first.factorised, item.rank) == ("cost", (table,), rank)
    )
    return item


def test_a_cost_has_the_interval_of_a_t_test_with_pooled_variance() -> None:
    found = fits()
    (noise,) = found.noise
    losses = {cell.architecture: cell.losses for cell in noise.cells}
    first = losses[shape(4, 64, embedding=Factorised(inner=8))]
    second = losses[shape(4, 64)]
    item = cost(found, "embedding", 8)
    pooled = math.fsum(np.var(own, ddof=1) for own in losses.values()) / len(losses)
    half = stats.t.ppf(0.95, 2 * len(losses)) * math.sqrt(pooled * 2 / 3)
    assert item.difference == pytest.approx(np.mean(first) - np.mean(second))
    assert item.high - item.difference == pytest.approx(half)
    assert item.stds == pytest.approx(item.difference / math.sqrt(pooled))


def test_sides_of_the_same_rank_are_compared() -> None:
    sides = [item for item in fits().contrasts if item.kind == "side"]
    found = {(item.second.factorised, item.rank): item for item in sides}
    assert set(found) == {((name,), rank) for name in ("head", "positions") for rank in RANKS}
    assert found[("head",), 2].difference == pytest.approx(0.03, abs=3e-3)
    assert found[("positions",), 2].is_settled


def test_sentences_say_which_side_hurts_and_which_rank_of_positions_is_enough() -> None:
    said = "\n".join(conclusions(fits()))
    assert "The limit hurts more on the embedding than on the head (rank 2 at depth 4" in said
    assert "Positions of rank 8 are within 2 standard deviations of full ones" in said


def test_what_is_undecided_says_how_many_seeds_would_settle_it() -> None:
    item = cost(fits(std=0.03), "embedding", 32)
    assert not item.is_settled
    said = [line for line in conclusions(fits(std=0.03)) if "is undecided" in line]
    assert said
    assert all("seeds would" in line for line in said)


def test_without_full_tables_the_control_is_what_a_limit_costs_against() -> None:
    """The papers' list of position ranks ends with the width, and has no full table."""
    shapes = [shape(4, 64, positions=Factorised(inner=inner)) for inner in (2, 8, 64, 96)]
    random = np.random.default_rng(0)
    found = fitted(simulated(shapes, loss, std=1e-4, seeds=3, random=random))
    costs = [item for item in found.contrasts if item.kind == "cost"]
    assert [item.rank for item in costs] == [2, 8, 96]
    assert {item.second.positions for item in costs} == {Factorised(inner=64)}
    assert costs[0].difference == pytest.approx(0.01 / 2 - 0.01 / 64, abs=3e-4)
    said = "\n".join(conclusions(found))
    assert "Against factorised but unlimited tables, depth 4, width 64, positions: rank 2" in said
