"""Where a resampled difference is zero: the point, and the interval that resampling leaves.

The interval holds every x at which zero lies in the middle 90 % of the resampled differences.
Where the difference is monotone this is the percentile interval of its root; where some resamples
have no root, or two, it still means what it says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.fit.curves import Reals
from archfit.fit.noise import TAIL
from archfit.spec.estimate import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from archfit.spec import lazy_numpy as np

COARSE, FINE = 65, 33  # points
REACH = 0.1  # of the range on each side, up to which an interval may end beyond it
HALVINGS = 40  # of the distance of two points, to find a root between them
ONE_SIGMA = (0.1587, 0.8413)  # quantiles; a few wild resamples do not count between them


@dataclass(frozen=True, kw_only=True, slots=True)
class ResampledDifference:
    """A difference of two losses over a range of ln N."""

    mean: Callable[[Reals], Reals]
    resampled: Callable[[Reals], Reals]  # a row for each resample
    log_range: tuple[float, float]

    def grid(self, reach: float = 0.0) -> Reals:
        """Points over the range, and beyond it by this share on each side."""
        low, high = self.log_range
        more = reach * (high - low)
        return np.linspace(low - more, high + more, COARSE)

    def below_zero(self, points: Reals) -> Reals:
        """The share of resamples that are below zero at each point."""
        return np.asarray((self.resampled(points) < 0).mean(axis=0))

    def slope_probability(self) -> float:
        """Two-sided, that the mean slope is none."""
        ends = self.resampled(np.array(self.log_range))
        rising = float((ends[:, 1] > ends[:, 0]).mean())
        return 2 * min(rising, 1 - rising)

    def slope(self) -> tuple[float, float]:
        """The mean slope over the range, and its standard error."""
        ends = np.array(self.log_range)
        first, last = self.mean(ends)
        inner = np.quantile(np.diff(self.resampled(ends), axis=1), ONE_SIGMA)
        length = self.log_range[1] - self.log_range[0]
        return float(last - first) / length, float(inner[1] - inner[0]) / 2 / length

    def height(self, point: float) -> tuple[float, float]:
        """The difference at a point, and its standard error."""
        at = np.array([point])
        inner = np.quantile(self.resampled(at), ONE_SIGMA)
        return float(self.mean(at)[0]), float(inner[1] - inner[0]) / 2

    def undecided_points(self) -> Reals:
        """The points of the grid at which the difference may be zero."""
        points = self.grid()
        return points[_may_be_zero(self.below_zero(points))]

    def nearest_point(self) -> float:
        """Where the one that is better by and large is ahead by the least."""
        points = self.grid()
        heights = self.mean(points)
        ahead = heights if heights.sum() > 0 else -heights
        return float(points[ahead.argmin()])

    def root(self, *, falling: bool) -> float | None:
        """The last place where the mean goes through zero in this direction."""
        return self._last_root(self.grid(), falling=falling)

    def sign_changes(self) -> tuple[tuple[float, bool], ...]:
        """Where the sign changes beyond doubt on both sides, and whether it falls there."""
        points = self.grid()
        below = self.below_zero(points)
        sure = np.flatnonzero(~_may_be_zero(below))
        is_below = below[sure] > 0.5
        found = []
        for at in np.flatnonzero(is_below[1:] != is_below[:-1]):
            between, falling = points[sure[at] : sure[at + 1] + 1], bool(is_below[at + 1])
            root = self._last_root(between, falling=falling)
            found += [] if root is None else [(root, falling)]
        return tuple(found)

    def interval_about(self, root: float) -> Estimate:
        """The root with all x about it at which the difference may be zero.

        An end is None where it lies beyond the range by more than REACH.
        """
        points = np.unique(np.append(self.grid(REACH), root))
        may_be_zero = _may_be_zero(self.below_zero(points))
        at = int(np.searchsorted(points, root))
        may_be_zero[at] = True
        return Estimate(
            value=root,
            low=self._end(points[at::-1], may_be_zero[at::-1]),
            high=self._end(points[at:], may_be_zero[at:]),
        )

    def _last_root(self, points: Reals, *, falling: bool) -> float | None:
        sign = -1.0 if falling else 1.0
        heights = sign * self.mean(points)
        places = np.flatnonzero((heights[:-1] <= 0) & (heights[1:] > 0))
        if not len(places):
            return None
        low, high = points[places[-1]], points[places[-1] + 1]
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = sign * float(self.mean(np.array([middle]))[0]) <= 0
            low, high = (middle, high) if below else (low, middle)
        return float((low + high) / 2)

    def _end(self, points: Reals, may_be_zero: "NDArray[np.bool_]") -> float | None:
        """Where, going along the points, zero is first left out; None if nowhere."""
        sure = np.flatnonzero(~may_be_zero)
        if not len(sure):
            return None
        inside, outside = points[sure[0] - 1], points[sure[0]]
        fine = np.linspace(inside, outside, FINE)
        outer = np.flatnonzero(~_may_be_zero(self.below_zero(fine)))
        first = int(outer[0]) if len(outer) else FINE - 1
        return float(fine[max(first, 1)] + fine[max(first, 1) - 1]) / 2


def _may_be_zero(below: Reals) -> "NDArray[np.bool_]":
    return (below >= TAIL) & (below <= 1 - TAIL)
