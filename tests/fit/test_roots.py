"""Intervals of roots, against the closed form that Fieller gave for a straight line."""

import math

import numpy as np
import pytest
from scipy import stats

from archfit.fit.curves import Reals, ResampledDifference

RANDOM = np.random.default_rng(0)
LEVEL, SLOPE, LEVEL_ERROR, SLOPE_ERROR = 0.02, -0.1, 0.01, 0.012
LEVELS = RANDOM.normal(LEVEL, LEVEL_ERROR, 100_000)
SLOPES = RANDOM.normal(SLOPE, SLOPE_ERROR, 100_000)


def straight(low: float = -1.0, high: float = 1.0) -> ResampledDifference:
    def resampled(points: Reals) -> Reals:
        return LEVELS[:, None] + SLOPES[:, None] * points

    return ResampledDifference(
        mean=lambda points: LEVEL + SLOPE * points, resampled=resampled, log_range=(low, high)
    )


def test_the_interval_of_a_line_is_fiellers() -> None:
    """All x at which (level + slope x)^2 <= z^2 (errors of it)."""
    z = 1.6448536
    a = SLOPE**2 - z**2 * SLOPE_ERROR**2
    b = LEVEL * SLOPE
    c = LEVEL**2 - z**2 * LEVEL_ERROR**2
    ends = sorted((-b + sign * math.sqrt(b * b - a * c)) / a for sign in (-1, 1))
    difference = straight()
    root = difference.root(falling=True)
    assert root is not None
    assert root == pytest.approx(0.2)
    span = difference.interval_about(root)
    assert span.low == pytest.approx(ends[0], abs=0.005)
    assert span.high == pytest.approx(ends[1], abs=0.005)


def test_an_end_beyond_reach_is_none() -> None:
    span = straight(0.15, 0.45).interval_about(0.2)
    assert span.low is None  # Fieller's lies at 0.03, and the reach ends at 0.12
    assert span.high == pytest.approx(0.39, abs=0.02)


def test_a_root_of_the_other_direction_is_no_root() -> None:
    assert straight().root(falling=False) is None
    assert straight(0.3, 1.0).root(falling=True) is None


def test_the_slope_is_told_from_none_by_its_error() -> None:
    slope, error = straight().slope()
    assert [slope, error] == pytest.approx([SLOPE, SLOPE_ERROR], rel=0.01)
    assert straight().slope_probability() < 1e-4


def test_an_end_a_little_beyond_the_range_is_found() -> None:
    """Fieller's lower end lies at 0.03; a tenth of the range beyond it is looked at."""
    assert straight(0.05, 0.45).interval_about(0.2).low == pytest.approx(0.03, abs=0.01)
    assert straight(0.065, 0.45).interval_about(0.2).low is not None
    assert straight(0.075, 0.45).interval_about(0.2).low is None


def line(level: float, slope: float) -> ResampledDifference:
    """The straight difference with another level and slope, and the same errors."""

    def resampled(points: Reals) -> Reals:
        levels, slopes = LEVELS - LEVEL + level, SLOPES - SLOPE + slope
        return levels[:, None] + slopes[:, None] * points

    def mean(points: Reals) -> Reals:
        return level + slope * points

    return ResampledDifference(mean=mean, resampled=resampled, log_range=(-1.0, 1.0))


def test_the_probability_of_no_slope_is_that_of_a_normal_law() -> None:
    expected = 2 * stats.norm.sf(0.02 / SLOPE_ERROR)
    assert line(0.0, -0.02).slope_probability() == pytest.approx(expected, rel=0.03)
    assert line(0.0, 0.02).slope_probability() == pytest.approx(expected, rel=0.03)


def test_a_height_has_the_error_of_its_place() -> None:
    height, error = line(0.02, -0.1).height(0.5)
    assert height == pytest.approx(-0.03)
    assert error == pytest.approx(math.hypot(LEVEL_ERROR, 0.5 * SLOPE_ERROR), rel=0.01)


def undecided_points(difference: ResampledDifference) -> Reals:
    points = difference.grid()
    return points[difference.below_zero(points)[1]]


def test_undecided_points_are_those_at_which_zero_is_inside() -> None:
    difference = straight()
    root = difference.interval_about(0.2)
    points = undecided_points(difference)
    assert root.low is not None
    assert root.high is not None
    step = 2 / 64
    assert points[0] == pytest.approx(root.low, abs=step)
    assert points[-1] == pytest.approx(root.high, abs=step)
    assert not len(undecided_points(line(0.2, 0.0)))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_that_dips_has_two_sign_changes_and_a_nearest_point(sign: int) -> None:
    """x^2 - 0.25, with an error of 0.01 everywhere."""

    def mean(points: Reals) -> Reals:
        return sign * (points**2 - 0.25)

    def resampled(points: Reals) -> Reals:
        return mean(points) + (LEVELS[:5000] - LEVEL)[:, None]

    dip = ResampledDifference(mean=mean, resampled=resampled, log_range=(-1.0, 1.2))
    (first, first_falls), (second, second_falls) = dip.sign_changes()
    assert [first, second] == pytest.approx([-0.5, 0.5], abs=1e-6)
    assert (first_falls, second_falls) == (sign > 0, sign < 0)
    above = ResampledDifference(
        mean=lambda points: mean(points) + sign * 0.3,
        resampled=lambda points: resampled(points) + sign * 0.3,
        log_range=(-1.0, 1.2),
    )
    assert above.sign_changes() == []
    assert above.nearest_point() == pytest.approx(0, abs=0.02)
