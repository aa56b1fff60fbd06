"""Intervals of roots, against the closed form that Fieller gave for a straight line."""

import math

import numpy as np
import pytest

from archfit.fit.forms import Reals
from archfit.fit.roots import ResampledDifference

RANDOM = np.random.default_rng(0)
LEVEL, SLOPE, LEVEL_ERROR, SLOPE_ERROR = 0.02, -0.1, 0.01, 0.012
LEVELS = RANDOM.normal(LEVEL, LEVEL_ERROR, 400_000)
SLOPES = RANDOM.normal(SLOPE, SLOPE_ERROR, 400_000)


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
    assert span.low == pytest.approx(ends[0], abs=0.003)
    assert span.high == pytest.approx(ends[1], abs=0.003)


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
