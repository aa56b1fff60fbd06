"""Crossings and best depths: what is reported, what is not, and what does not matter."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from archfit.fit.depths import Crossing
from archfit.fit.fitted import Fits, fitted
from archfit.fit.noise import seeds_needed
from archfit.report.conclusions import conclusions
from archfit.spec import RunRecord
from tests_curves import (
    MIDDLE,
    Curve,
    by_depth,
    power_law,
    quadratic,
    record,
    shape,
    shifted_to_meet,
    simulated,
    widths,
)

SHALLOW = power_law(2.0, 1.0, 0.2)
STEEPER = power_law(2.1, 0.95, 0.25)


def records(deep: Curve, *, std: float = 1e-3, sizes: int = 6, seeds: int = 3) -> list[RunRecord]:
    shapes = [shape(depth, width) for depth in (6, 12) for width in widths(depth, 1e6, 1e7, sizes)]
    loss = by_depth({6: SHALLOW, 12: deep})
    return simulated(shapes, loss, std=std, seeds=seeds, random=np.random.default_rng(1))


def crossing(found: Fits) -> Crossing:
    (only,) = found.crossings
    return only


def test_almost_without_noise_the_crossing_and_its_width_are_exact() -> None:
    found = crossing(fitted(records(shifted_to_meet(STEEPER, SHALLOW, MIDDLE), std=1e-5)))
    assert found.verdict == "deeper wins above"
    assert found.size.value == pytest.approx(3e6, rel=1e-3)
    assert found.width.value == pytest.approx(math.sqrt(3e6 / 72), rel=1e-3)
    assert found.size.low is not None
    assert found.size.high is not None
    assert found.size.low <= 3e6 <= found.size.high
    assert found.size.high / found.size.low < 1.001


def test_a_shallower_network_may_win_above() -> None:
    flatter = shifted_to_meet(power_law(2.0, 0.8, 0.2), SHALLOW, MIDDLE)
    found = fitted(records(flatter))
    assert crossing(found).verdict == "shallower wins above"
    assert conclusions(found)[0].startswith("Depth 6 overtakes depth 12 at ")


@pytest.mark.parametrize(("change", "verdict"), [(-0.02, "deeper"), (0.02, "shallower")])
def test_parallel_curves_do_not_cross(change: float, verdict: str) -> None:
    found = fitted(records(lambda x: SHALLOW(x) + change))
    assert crossing(found).verdict == f"{verdict} wins everywhere"
    assert crossing(found).size.value is None
    assert "no crossing in range" in conclusions(found)[0]


@pytest.mark.parametrize(
    ("place", "verdict", "side"), [(-2.0, "deeper", "below"), (2.0, "shallower", "above")]
)
def test_a_crossing_out_of_range_says_on_which_side(place: float, verdict: str, side: str) -> None:
    found = fitted(records(shifted_to_meet(STEEPER, SHALLOW, MIDDLE + place)))
    item = crossing(found)
    assert (item.verdict, item.beyond) == (f"{verdict} wins everywhere", side)
    edge = {"below": "1.02M", "above": "9.96M"}[side]
    assert f"a crossing would lie {side} {edge}" in conclusions(found)[0]


def test_equal_curves_are_undecided_and_carry_the_seeds_that_would_tell() -> None:
    found = fitted(records(SHALLOW))
    assert crossing(found).verdict == "undecided"
    assert conclusions(found)[0].startswith("No crossing of depth 6 and depth 12 is clear in ")
    assert "seeds would" in conclusions(found)[0]


def test_the_sentence_has_size_width_interval_and_seeds() -> None:
    found = fitted(records(shifted_to_meet(STEEPER, SHALLOW, MIDDLE)))
    item = crossing(found)
    assert item.size.value is not None
    assert item.width.value is not None
    said = conclusions(found)[0]
    assert said.startswith(
        f"Depth 12 overtakes depth 6 at {item.size.value / 1e6:.2f}M block parameters"
    )
    assert f"where the shallow width is {item.width.value:.0f} (" in said
    assert said.endswith("; 3 seeds.")


def test_an_interval_may_end_beyond_the_range() -> None:
    weak = shifted_to_meet(lambda x: SHALLOW(x) - 0.004 * (x - MIDDLE), SHALLOW, MIDDLE + 0.6)
    item = crossing(fitted(records(weak, std=1.2e-3)))
    assert item.is_crossing
    assert item.size.low is not None
    assert item.size.high is None


def ahead_between(x: float) -> float:
    """The deeper network wins from e^-0.7 to e^0.7 of 3M, and by the mean slope nobody does."""
    return SHALLOW(x) + 0.02 * ((x - MIDDLE) ** 2 - 0.7**2)


def test_depths_that_cross_twice_have_two_crossings() -> None:
    found = fitted(records(ahead_between))
    verdicts = [(item.verdict, item.number, item.times) for item in found.crossings]
    assert verdicts == [("deeper wins above", 1, 2), ("shallower wins above", 2, 2)]
    for item, truth in zip(found.crossings, (-0.7, 0.7), strict=True):
        assert item.size.low is not None
        assert item.size.high is not None
        assert item.size.low < 3e6 * math.exp(truth) < item.size.high < 1.3 * item.size.low
    first, second, *_ = conclusions(found)
    assert first.startswith("Depth 12 overtakes depth 6 at 1.")
    assert second.startswith("Depth 6 overtakes depth 12 at 6.")
    assert first.endswith("; crossing 1 of 2; 3 seeds.")
    assert found.laws
    assert {law.kind for law in found.laws} == {"size"}


def test_where_curves_nearly_touch_the_seeds_are_those_that_tell_whether_they_do() -> None:
    """The slopes differ beyond doubt, so it is not the slope that more seeds would settle."""
    item = crossing(fitted(records(lambda x: ahead_between(x) + 0.0105, sizes=9)))
    assert item.verdict == "undecided"
    assert item.seeds_needed is not None
    assert 20 < item.seeds_needed < 200


def test_a_sum_of_two_power_laws_is_explained() -> None:
    def deep(x: float) -> float:
        return 1.8 + 0.5 * math.exp(-0.05 * (x - MIDDLE)) + 0.3 * math.exp(-0.8 * (x - MIDDLE))

    found = fitted(records(shifted_to_meet(deep, SHALLOW, MIDDLE), std=1e-4, sizes=12))
    item = crossing(found)
    assert item.inflation == 1
    assert item.size.value == pytest.approx(3e6, rel=3e-3)


def test_depths_without_common_sizes_are_not_compared() -> None:
    shapes = [shape(6, width) for width in widths(6, 1e6, 2e6, 4)]
    shapes += [shape(12, width) for width in widths(12, 4e6, 8e6, 4)]
    loss = by_depth({6: SHALLOW, 12: SHALLOW})
    random = np.random.default_rng(0)
    assert fitted(simulated(shapes, loss, std=1e-3, seeds=2, random=random)).crossings == ()


def test_only_neighbouring_depths_are_marked_so() -> None:
    shapes = [shape(depth, width) for depth in (2, 4, 8) for width in widths(depth, 1e6, 4e6, 3)]
    random = np.random.default_rng(0)
    found = fitted(simulated(shapes, lambda _: 3.0, std=1e-3, seeds=2, random=random)).crossings
    marked = {(one.shallow.depth, one.deep.depth): one.neighbours for one in found}
    assert marked == {(2, 4): True, (2, 8): False, (4, 8): True}


def test_a_shape_that_no_form_has_widens_the_interval() -> None:
    """Cells off the curve by far more than seeds explain are noise that more seeds do not cure."""
    deep = shifted_to_meet(STEEPER, SHALLOW, MIDDLE)
    rough = [
        replace_loss(one, 0.006 * (-1) ** (one.spec.architecture.width // 2))
        for one in records(deep, sizes=10)
    ]
    found, smooth = crossing(fitted(rough)), crossing(fitted(records(deep, sizes=10)))
    assert found.inflation > 10
    assert smooth.inflation == 1
    assert length(found) > 3 * length(smooth)


def length(item: Crossing) -> float:
    assert item.size.low is not None
    assert item.size.high is not None
    return math.log(item.size.high / item.size.low)


def replace_loss(one: RunRecord, change: float) -> RunRecord:
    loss = one.evaluations[-1].heldout_nats_per_token + change
    return record(one.spec.architecture, loss, one.spec.seed)


@settings(max_examples=5)
@given(order=st.permutations(range(36)))
def test_the_order_of_records_does_not_matter(order: list[int]) -> None:
    own = records(shifted_to_meet(quadratic(3, 0.2, 0.01), SHALLOW, MIDDLE))
    assert fitted(own[at] for at in order) == fitted(own)


@settings(max_examples=5)
@given(factor=st.floats(0.1, 10), change=st.floats(0, 5))
def test_the_unit_and_the_zero_of_losses_do_not_matter(factor: float, change: float) -> None:
    own = records(shifted_to_meet(STEEPER, SHALLOW, MIDDLE))
    other = [
        record(
            one.spec.architecture,
            one.evaluations[-1].heldout_nats_per_token * factor + change,
            one.spec.seed,
        )
        for one in own
    ]
    first, second = crossing(fitted(own)), crossing(fitted(other))
    expected = list(first.size.row().values())
    assert list(second.size.row().values()) == pytest.approx(expected, rel=1e-3)


def test_more_seeds_make_shorter_intervals() -> None:
    deep = shifted_to_meet(STEEPER, SHALLOW, MIDDLE)
    lengths = [length(crossing(fitted(records(deep, seeds=seeds)))) for seeds in (3, 27)]
    assert lengths[1] == pytest.approx(lengths[0] / 3, rel=0.35)


def test_recipes_are_not_mixed() -> None:
    own = records(shifted_to_meet(STEEPER, SHALLOW, MIDDLE))
    longer = [
        record(
            one.spec.architecture,
            one.evaluations[-1].heldout_nats_per_token - 0.3,
            one.spec.seed,
            recipe=replace(one.spec.recipe, steps=2000),
        )
        for one in own
    ]
    found = fitted([*own, *longer])
    assert len(found.crossings) == len(found.noise) == 2


CELLS = {3: 3.39, 6: 3.38, 12: 3.3805, 24: 3.6}  # one size, four depths
SHAPES = [shape(3, 272), shape(6, 192), shape(12, 136), shape(24, 96)]


def test_cells_of_one_size_give_the_best_depth_and_its_ties() -> None:
    random = np.random.default_rng(0)
    loss = lambda architecture: CELLS[architecture.depth]  # noqa: E731 - it is the whole story
    fits = fitted(simulated(SHAPES, loss, std=1e-3, seeds=3, random=random))
    (best,) = fits.best_depth
    assert {best.family.depth, *best.ties} == {6, 12}
    assert (best.estimate.low, best.estimate.high, best.depths) == (6, 12, (3, 6, 12, 24))
    assert any(line.startswith("Best of the depths 3, 6, 12, 24 at") for line in conclusions(fits))


def test_curves_give_it_along_the_sizes_that_both_have() -> None:
    shallow = power_law(2.0, 1.0, 0.2)
    deep = shifted_to_meet(power_law(2.1, 0.95, 0.25), shallow, MIDDLE)
    shapes = [shape(depth, width) for depth in (6, 12) for width in widths(depth, 1e6, 1e7, 5)]
    random = np.random.default_rng(0)
    loss = by_depth({6: shallow, 12: deep})
    found = fitted(simulated(shapes, loss, std=1e-3, seeds=3, random=random)).best_depth
    assert [item.family.depth for item in found] == [6, 6, 12, 12, 12]
    assert all(not item.ties for item in (found[0], found[-1]))


def test_sizes_that_not_all_depths_have_are_left_to_those_that_do() -> None:
    """At the small end the best depth is missing, so nothing is said of it."""
    ranges = {6: (1e6, 1e7), 12: (2e6, 1e7), 24: (1e6, 8e6)}
    shapes = [shape(depth, w) for depth, ends in ranges.items() for w in widths(depth, *ends, 5)]
    random = np.random.default_rng(0)
    curve = power_law(2.0, 1.0, 0.2)
    loss = by_depth({6: curve, 12: lambda x: curve(x) - 0.1, 24: lambda x: curve(x) + 0.1})
    found = fitted(simulated(shapes, loss, std=1e-3, seeds=3, random=random)).best_depth
    assert [item.family.depth for item in found] == [12] * 5
    assert {item.depths for item in found} == {(6, 12, 24)}


def test_of_five_equal_depths_few_are_said_to_be_worse_than_the_best() -> None:
    shapes = [shape(depth, w) for depth, w in ((2, 346), (4, 244), (6, 200), (8, 174), (12, 142))]
    random, wrong = np.random.default_rng(0), 0
    for _ in range(200):
        runs = simulated(shapes, lambda _: 3.0, std=1e-3, seeds=3, random=random)
        (best,) = fitted(runs).best_depth
        wrong += len(best.ties) < 4
    assert wrong / 200 < 0.13


def test_cells_within_three_percent_of_the_smallest_are_of_one_size() -> None:
    shapes = [shape(4, 100), shape(1, 202), shape(2, 144), shape(9, 68)]
    sizes = [one.block_params / shapes[0].block_params for one in shapes]
    assert sizes == pytest.approx([1, 1.0201, 1.0368, 1.0404])
    random = np.random.default_rng(0)
    runs = simulated(shapes, lambda _: 3.0, std=1e-3, seeds=3, random=random)
    assert [item.depths for item in fitted(runs).best_depth] == [(1, 4), (2, 9)]


def test_ties_of_cells_are_those_that_a_t_test_among_all_pairs_leaves() -> None:
    """Of three depths the tail of each comparison is 5 % / 3."""
    losses = {2: [3.0, 3.02], 4: [3.03, 3.05], 8: [3.06, 3.08]}
    shapes = {2: shape(2, 200), 4: shape(4, 142), 8: shape(8, 100)}
    runs = [
        record(shapes[depth], loss, seed)
        for depth, own in losses.items()
        for seed, loss in enumerate(own)
    ]
    runs += [record(shape(2, 40), loss, seed) for seed, loss in enumerate([4.0, 4.02])]
    (item,) = fitted(runs).best_depth
    error = math.sqrt(2e-4) * math.sqrt(2 / 2)
    limit = stats.t.ppf(1 - 0.05 / 3, 4) * error
    assert 0.03 < limit < 0.06
    assert (item.family.depth, item.ties, item.seeds) == (2, (4,), 2)
    assert item.seeds_needed == seeds_needed(0.03, error, 2, tail=0.05 / 3)


def test_the_seeds_of_a_comparison_are_those_of_the_cell_with_the_fewest() -> None:
    runs = [record(shape(2, 200), 3.0 + 0.01 * seed, seed) for seed in range(2)]
    runs += [record(shape(8, 100), 3.1 + 0.01 * seed, seed) for seed in range(5)]
    (item,) = fitted(runs).best_depth
    assert item.seeds == 2


def test_curves_over_different_sizes_are_compared_where_two_of_them_are() -> None:
    ranges = {6: (1e6, 2e6), 12: (1.5e6, 4e6), 24: (3e6, 8e6)}
    shapes = [shape(depth, w) for depth, ends in ranges.items() for w in widths(depth, *ends, 4)]
    curve = power_law(2.0, 1.0, 0.2)
    loss = by_depth({6: curve, 12: lambda x: curve(x) - 0.1, 24: lambda x: curve(x) + 0.1})
    random = np.random.default_rng(0)
    found = fitted(simulated(shapes, loss, std=1e-3, seeds=3, random=random)).best_depth
    assert {item.depths for item in found} == {(6, 12), (12, 24)}
    assert {item.family.depth for item in found} == {12}


def test_slopes_differ_where_equal_ones_would_in_fewer_than_one_of_twenty() -> None:
    item = crossing(fitted(records(SHALLOW)))
    assert replace(item, slope_probability=0.049).is_sloped
    assert not replace(item, slope_probability=0.051).is_sloped


def test_the_resampled_width_of_a_crossing_has_its_interval() -> None:
    item = crossing(fitted(records(shifted_to_meet(STEEPER, SHALLOW, MIDDLE))))
    assert item.log_widths is not None
    low, high = np.exp(np.quantile(item.log_widths, [0.05, 0.95]))
    assert [low, high] == pytest.approx([item.width.low, item.width.high], rel=0.01)


def test_ties_of_curves_carry_the_seeds_that_would_tell_them_apart() -> None:
    fits = fitted(records(lambda x: SHALLOW(x) + 4e-4, std=1e-3))
    item = fits.best_depth[2]
    assert {item.family.depth, *item.ties} == {6, 12}
    shallow, deep = fits.curves
    at = np.array([math.log(item.size)])
    gap = abs(float(deep.mean(at)[0] - shallow.mean(at)[0]))
    error = float(np.std(deep.resampled(at) - shallow.resampled(at)))
    expected = seeds_needed(gap, error, 3, tail=0.05)
    assert item.seeds_needed == pytest.approx(expected, rel=0.2)
