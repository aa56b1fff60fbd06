"""One network against others: intervals that hold together."""

import numpy as np
import pytest

from archfit.fit.against import Difference, differences
from archfit.fit.cells import Cell
from archfit.spec import standard_architecture
from tests_training import RECIPE

TRUTH = (2.0, 2.0, 2.05, 1.9, 2.4)
STD = 0.03


def cells(generator: np.random.Generator, seeds: int) -> list[Cell]:
    found = []
    for depth, mean in enumerate(TRUTH, start=1):
        losses = tuple(float(loss) for loss in generator.normal(2 * mean, 2 * STD, seeds))
        shape = standard_architecture(depth=depth, width=16, heads=2, vocab=9, context=12)
        found.append(
            Cell(
                architecture=shape,
                data_hash="0" * 64,
                recipe=RECIPE,
                losses=losses,
                bits_per_byte=sum(losses) / seeds / 2,
            )
        )
    return found


def against_all(found: list[Cell], among: int = 4) -> tuple[Difference, ...]:
    reference, *others = found
    return differences(reference, others, pooled=found, among=among)


def test_all_intervals_together_hold_the_truth_in_nine_of_ten_experiments() -> None:
    generator, trials, held = np.random.default_rng(0), 600, 0
    for _ in range(trials):
        found = against_all(cells(generator, seeds=3))
        held += all(
            one.low <= mean - TRUTH[0] <= one.high
            for one, mean in zip(found, TRUTH[1:], strict=True)
        )
    assert 0.87 < held / trials < 0.97  # Bonferroni is a little too careful


def test_a_reference_that_was_chosen_among_several_needs_wider_intervals() -> None:
    made = cells(np.random.default_rng(1), seeds=3)
    usual, careful = against_all(made), against_all(made, among=12)
    assert all(a.high - a.low < b.high - b.low for a, b in zip(usual, careful, strict=True))


def test_what_is_settled_needs_no_more_seeds_and_what_is_not_says_how_many() -> None:
    found = against_all(cells(np.random.default_rng(2), seeds=3))
    assert found[-1].is_worse
    assert found[-1].seeds_needed is None
    open_ones = [one for one in found if not (one.is_worse or one.is_better)]
    assert open_ones
    assert all(one.seeds_needed is None or one.seeds_needed > 3 for one in open_ones)


def test_one_seed_each_is_refused() -> None:
    made = cells(np.random.default_rng(3), seeds=1)
    with pytest.raises(ValueError, match="0 degrees of freedom are too few for an interval"):
        against_all(made)


def test_seeds_that_did_not_settle_it_are_not_said_to_be_enough() -> None:
    """A difference just inside its interval: the normal law alone would ask for fewer."""
    generator = np.random.default_rng(4)
    said = [
        one.seeds_needed
        for _ in range(200)
        for one in against_all(cells(generator, seeds=2))
        if one.seeds_needed is not None
    ]
    assert min(said) == 3
