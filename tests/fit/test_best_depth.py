"""The best depth at equal size."""

import numpy as np

from archfit.fit.conclusions import conclusions
from archfit.fit.fitted import fitted
from tests_curves import MIDDLE, by_depth, power_law, shape, shifted_to_meet, simulated, widths

CELLS = {3: 3.39, 6: 3.38, 12: 3.3805, 24: 3.6}  # one size, four depths
SHAPES = [shape(3, 272), shape(6, 192), shape(12, 136), shape(24, 96)]


def test_cells_of_one_size_give_the_best_depth_and_its_ties() -> None:
    random = np.random.default_rng(0)
    loss = lambda architecture: CELLS[architecture.depth]  # noqa: E731 - it is the whole story
    fits = fitted(simulated(SHAPES, loss, std=1e-3, seeds=3, random=random))
    (best,) = fits.best_depth
    assert {best.depth, *best.ties} == {6, 12}
    assert (best.low, best.high, best.depths) == (6, 12, (3, 6, 12, 24))
    assert any(line.startswith("Best of the depths 3, 6, 12, 24 at") for line in conclusions(fits))


def test_curves_give_it_along_the_sizes_that_both_have() -> None:
    shallow = power_law(2.0, 1.0, 0.2)
    deep = shifted_to_meet(power_law(2.1, 0.95, 0.25), shallow, MIDDLE)
    shapes = [shape(depth, width) for depth in (6, 12) for width in widths(depth, 1e6, 1e7, 5)]
    random = np.random.default_rng(0)
    loss = by_depth({6: shallow, 12: deep})
    found = fitted(simulated(shapes, loss, std=1e-3, seeds=3, random=random)).best_depth
    assert [item.depth for item in found] == [6, 6, 12, 12, 12]
    assert all(not item.ties for item in (found[0], found[-1]))


def test_sizes_that_not_all_depths_have_are_left_to_those_that_do() -> None:
    """At the small end the best depth is missing, so nothing is said of it."""
    ranges = {6: (1e6, 1e7), 12: (2e6, 1e7), 24: (1e6, 8e6)}
    shapes = [shape(depth, w) for depth, ends in ranges.items() for w in widths(depth, *ends, 5)]
    random = np.random.default_rng(0)
    curve = power_law(2.0, 1.0, 0.2)
    loss = by_depth({6: curve, 12: lambda x: curve(x) - 0.1, 24: lambda x: curve(x) + 0.1})
    found = fitted(simulated(shapes, loss, std=1e-3, seeds=3, random=random)).best_depth
    assert [item.depth for item in found] == [12] * 5
    assert {item.depths for item in found} == {(6, 12, 24)}


def test_of_five_equal_depths_few_are_said_to_be_worse_than_the_best() -> None:
    shapes = [shape(depth, w) for depth, w in ((2, 346), (4, 244), (6, 200), (8, 174), (12, 142))]
    random, wrong = np.random.default_rng(0), 0
    for _ in range(200):
        runs = simulated(shapes, lambda _: 3.0, std=1e-3, seeds=3, random=random)
        (best,) = fitted(runs).best_depth
        wrong += len(best.ties) < 4
    assert wrong / 200 < 0.13
