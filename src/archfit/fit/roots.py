"""Where a resampled difference is zero: the point, and the interval that resampling leaves.

The interval holds every x at which zero lies in the middle 90 % of the resampled differences.
Where the difference is monotone this is the percentile interval of its root; where some resamples
have no root, or two, it still means what it says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archfit.fit.forms import Reals
from archfit.fit.resample import TAIL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COARSE, FINE = 65, 33  # points
REACH = 0.1  # of the range on each side, up to which an interval may end beyond it


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A difference of losses over ln N between `low` and `high`."""

    mean: Callable[[Reals], Reals]
    resampled: Callable[[Reals], Reals]  # a row for each resample
    low: float
    high: float

    @property
    def reach(self) -> tuple[float, float]:
        """The range in which ends of intervals are looked for."""
        more = REACH * (self.high - self.low)
        return self.low - more, self.high + more

    def grid(self) -> Reals:
        """Points over the range."""
        import numpy as np

        return np.linspace(self.low, self.high, COARSE)

    def below_zero(self, points: Reals) -> Reals:
        """The share of resamples that are below zero at each point."""
        import numpy as np

        return np.asarray((self.resampled(points) < 0).mean(axis=0))

    def slope_probability(self) -> float:
        """Two-sided, that the mean slope is none."""
        import numpy as np

        ends = self.resampled(np.array([self.low, self.high]))
        rising = float((ends[:, 1] > ends[:, 0]).mean())
        return 2 * min(rising, 1 - rising)

    def slope(self) -> tuple[float, float]:
        """The mean slope over the range, and its standard error."""
        import numpy as np

        ends = np.array([self.low, self.high])
        first, last = self.mean(ends)
        change = np.diff(self.resampled(ends), axis=1)
        inner = np.quantile(change, [0.1587, 0.8413])  # a few wild resamples do not count
        length = self.high - self.low
        return float(last - first) / length, float(inner[1] - inner[0]) / 2 / length

    def height(self, point: float) -> tuple[float, float]:
        """The difference at a point, and its standard error."""
        import numpy as np

        at = np.array([point])
        inner = np.quantile(self.resampled(at), [0.1587, 0.8413])
        return float(self.mean(at)[0]), float(inner[1] - inner[0]) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """An interval of ln N; an end is None where it lies beyond reach."""

    low: float | None
    high: float | None


def root_of(difference: Difference, *, falling: bool) -> float | None:
    """The last place where the mean goes through zero in this direction."""
    return _last_root(difference, difference.grid(), falling=falling)


def told_roots(difference: Difference) -> tuple[tuple[float, bool], ...]:
    """Where the difference changes from one told sign to the other, and whether it falls there."""
    import numpy as np

    points = difference.grid()
    below = difference.below_zero(points)
    told = np.flatnonzero(~_may_be_zero(below))
    is_below = below[told] > 0.5
    found = []
    for at in np.flatnonzero(is_below[1:] != is_below[:-1]):
        between, falling = points[told[at] : told[at + 1] + 1], bool(is_below[at + 1])
        root = _last_root(difference, between, falling=falling)
        found += [] if root is None else [(root, falling)]
    return tuple(found)


def nearest_point(difference: Difference) -> float:
    """Where the one that is better by and large is ahead by the least."""
    points = difference.grid()
    heights = difference.mean(points)
    ahead = heights if heights.sum() > 0 else -heights
    return float(points[ahead.argmin()])


def _last_root(difference: Difference, points: Reals, *, falling: bool) -> float | None:
    import numpy as np

    sign = -1.0 if falling else 1.0
    heights = sign * difference.mean(points)
    places = np.flatnonzero((heights[:-1] <= 0) & (heights[1:] > 0))
    if not len(places):
        return None
    low, high = points[places[-1]], points[places[-1] + 1]
    for _ in range(40):
        middle = (low + high) / 2
        below = sign * float(difference.mean(np.array([middle]))[0]) <= 0
        low, high = (middle, high) if below else (low, middle)
    return float((low + high) / 2)


def span_about(difference: Difference, root: float) -> Span:
    """All x about the root at which the difference may be zero."""
    import numpy as np

    least, most = difference.reach
    points = np.unique(np.append(np.linspace(least, most, COARSE), root))
    may_be_zero = _may_be_zero(difference.below_zero(points))
    at = int(np.searchsorted(points, root))
    may_be_zero[at] = True
    return Span(
        low=_end(difference, points[at::-1], may_be_zero[at::-1]),
        high=_end(difference, points[at:], may_be_zero[at:]),
    )


def undecided_points(difference: Difference) -> Reals:
    """The points of the grid at which the difference may be zero."""
    points = difference.grid()
    return points[_may_be_zero(difference.below_zero(points))]


def _may_be_zero(below: Reals) -> "NDArray[np.bool_]":
    return (below >= TAIL) & (below <= 1 - TAIL)


def _end(difference: Difference, points: Reals, may_be_zero: "NDArray[np.bool_]") -> float | None:
    """Where, going along the points, the difference is first told from zero; None if nowhere."""
    import numpy as np

    told = np.flatnonzero(~may_be_zero)
    if not len(told):
        return None
    inside, outside = points[told[0] - 1], points[told[0]]
    fine = np.linspace(inside, outside, FINE)
    outer = np.flatnonzero(~_may_be_zero(difference.below_zero(fine)))
    first = int(outer[0]) if len(outer) else FINE - 1
    return float(fine[max(first, 1)] + fine[max(first, 1) - 1]) / 2
