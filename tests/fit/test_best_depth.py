"""Best depths of planted curves: found, covered by their intervals, brought to one size."""

import math

import numpy as np
import pytest

from archfit.fit.best_depth import DepthPoint, depth_curves

DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
NOISE = 0.01


def planted(depth: float, size: float, best: float) -> float:
    """A loss whose least is at `best` layers: steep below, gentle above."""
    away = math.log(depth / best)
    return 3 - 0.15 * math.log(size / 1e5) + 0.08 * away**2 - 0.01 * away**3


def points(
    size: int, best: float, random: np.random.Generator, *, seeds: int = 2, miss: float = 0.0
) -> list[DepthPoint]:
    found = []
    for depth in DEPTHS:
        params = round(size * math.exp(miss * random.uniform(-1, 1)))
        mean = planted(depth, params, best)
        losses = tuple(mean + NOISE * random.standard_normal() for _ in range(seeds))
        found.append(DepthPoint(depth=depth, params=params, losses=losses))
    return found


def test_intervals_hold_the_planted_depth_nine_times_of_ten() -> None:
    inside = []
    for trial in range(60):
        random = np.random.default_rng(trial)
        best = math.exp(random.uniform(math.log(3), math.log(14)))
        (curve,) = depth_curves(str(trial), {100_000: points(100_000, best, random)})
        assert curve.explained > 0.8
        inside.append(curve.best.contains(best))
        assert curve.best.value == pytest.approx(best, rel=0.6)
    assert 0.8 <= np.mean(inside) <= 1.0


def test_networks_that_miss_their_size_are_brought_to_it() -> None:
    exact, missed = (
        depth_curves(
            "x",
            {
                size: points(size, 6.0, np.random.default_rng(size), miss=miss)
                for size in (60_000, 125_000, 250_000)
            },
        )[1]
        for miss in (0.0, 0.3)
    )
    assert missed.least == pytest.approx(exact.least, abs=0.02)
    assert missed.noise < 0.02  # of seeds, not of sizes
    assert exact.slope == pytest.approx(-0.15 / 2, abs=0.01)  # the other half is more tokens
    assert missed.best.contains(6.0)


def test_a_best_depth_beyond_the_grid_is_an_open_end() -> None:
    (deep,) = depth_curves("x", {10_000: points(10_000, 60.0, np.random.default_rng(1))})
    assert deep.best.high is None
    assert not deep.is_inside
    two_and_more = points(10_000, 1.5, np.random.default_rng(1))[1:]
    (shallow,) = depth_curves("x", {10_000: two_and_more})
    assert shallow.best.low is None
    assert not shallow.is_inside


def test_a_best_depth_at_the_end_of_the_grid_is_not_inside_by_rounding() -> None:
    three_and_more = points(10_000, 0.5, np.random.default_rng(1))[2:]
    (curve,) = depth_curves("x", {10_000: three_and_more})
    assert curve.best.value == curve.depths[0] == 3
    assert not curve.is_inside


def test_data_learnt_by_heart_have_a_curve() -> None:
    perfect = [DepthPoint(depth=depth, params=10_000, losses=(0.0, 0.0)) for depth in DEPTHS]
    (curve,) = depth_curves("x", {10_000: perfect})
    assert curve.least == pytest.approx(0, abs=1e-9)


def test_no_network_is_less_deep_than_one_layer() -> None:
    (shallow,) = depth_curves("x", {10_000: points(10_000, 0.5, np.random.default_rng(1))})
    assert shallow.best.low == shallow.best.value == 1
    assert shallow.is_inside


def test_without_repeats_noise_is_what_a_quartic_leaves() -> None:
    random = np.random.default_rng(2)
    (curve,) = depth_curves("x", {1_000_000: points(1_000_000, 8.0, random, seeds=1)})
    assert NOISE / 2 < curve.noise < 2 * NOISE
    assert curve.best.contains(8.0)


def test_few_depths_without_repeats_take_the_noise_of_the_nearest_size() -> None:
    random = np.random.default_rng(2)
    few = points(1_000_000, 6.0, random, seeds=1)[2:9]
    small, large = depth_curves("x", {125_000: points(125_000, 4.0, random), 1_000_000: few})
    assert large.noise == small.noise > 0
    assert depth_curves("x", {1_000_000: few}) == ()


def test_a_network_that_failed_to_train_is_on_no_curve() -> None:
    random = np.random.default_rng(3)
    small, large = points(60_000, 4.0, random), points(960_000, 4.0, random)
    fails = DepthPoint(depth=64, params=960_000, losses=(min(p.mean for p in small) + 0.01,))
    learns = DepthPoint(depth=64, params=960_000, losses=(min(p.mean for p in small) - 0.01,))
    _, fair = depth_curves("x", {60_000: small, 960_000: large})
    _, curve = depth_curves("x", {60_000: small, 960_000: [*large, fails]})
    assert (curve.failed, curve.best) == ((fails,), fair.best)
    _, other = depth_curves("x", {60_000: small, 960_000: [*large, learns]})
    assert (other.failed, other.depths[-1]) == ((), 64)


def test_nine_of_ten_new_runs_lie_where_they_are_predicted() -> None:
    inside = []
    for trial in range(40):
        random = np.random.default_rng(trial)
        sizes = {size: points(size, 5.0, random, miss=0.05) for size in (60_000, 125_000)}
        curve = depth_curves(str(trial), sizes)[1]
        for depth in (2, 6, 16):
            again = planted(depth, 120_000, 5.0) + NOISE * random.standard_normal()
            inside.append(curve.predicted(depth, 120_000).contains(again))
    assert 0.84 <= np.mean(inside) <= 0.98


def test_regret_is_nought_at_the_best_depth_and_grows_away_from_it() -> None:
    (curve,) = depth_curves("x", {10_000: points(10_000, 5.0, np.random.default_rng(3))})
    assert curve.best.value is not None
    assert curve.regret(curve.best.value) == pytest.approx(0, abs=1e-4)
    assert 0 < curve.regret(8) < curve.regret(16) < curve.regret(32)
    assert curve.regret(2) == pytest.approx(planted(2, 1, 5.0) - planted(5, 1, 5.0), abs=0.02)
