"""Where the deeper of two networks begins to win, or the shallower."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archfit.fit.curves import Curve
from archfit.fit.families import FamilyKey
from archfit.fit.forms import Reals
from archfit.fit.power import seeds_needed
from archfit.fit.roots import (
    Difference,
    nearest_point,
    root_of,
    span_about,
    told_roots,
    undecided_points,
)

SIGNIFICANT = 0.05  # two-sided, for the difference in slope

Verdict = Literal[
    "deeper wins above",
    "shallower wins above",
    "deeper wins everywhere",
    "shallower wins everywhere",
    "undecided",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossing:
    """Two depths compared at equal size, everything else the same.

    An end of an interval is None where it lies beyond the sizes that both have. Depths that cross
    several times have one of these for each.
    """

    shallow: FamilyKey
    deep: FamilyKey
    verdict: Verdict
    size: float | None  # block parameters; None without a crossing
    low: float | None
    high: float | None
    width: float | None  # of the shallow network
    width_low: float | None
    width_high: float | None
    beyond: Literal["below", "above"] | None  # where a crossing out of range would lie
    range: tuple[float, float]  # sizes that both have
    slope: float  # of deep - shallow, nats per e-fold of size
    slope_probability: float
    seeds: int  # the fewest of any cell
    seeds_needed: int | None  # to settle it; None where it is settled, or above 1000
    neighbours: bool  # no depth between the two was trained
    inflation: float  # the larger of the two curves'
    number: int  # of this crossing, smallest size first; 0 without one
    times: int  # that the two cross in range

    @property
    def is_crossing(self) -> bool:
        """Whether there is one in range."""
        return self.size is not None

    @property
    def deeper_wins_from_here_on(self) -> bool:
        """Whether this is the last crossing, and the deeper network's."""
        return self.verdict == "deeper wins above" and self.number == self.times


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossingDraws:
    """The resampled ln width of a crossing, for the law that several of them make."""

    crossing: Crossing
    log_widths: Reals


def difference_of(deep: Curve, shallow: Curve) -> Difference | None:
    """deep - shallow over the sizes that both have; None where they share none."""
    ranges = deep.family.log_range, shallow.family.log_range
    low, high = max(ranges[0][0], ranges[1][0]), min(ranges[0][1], ranges[1][1])
    if not low < high:
        return None
    return Difference(
        mean=lambda points: deep.mean(points) - shallow.mean(points),
        resampled=lambda points: deep.resampled(points) - shallow.resampled(points),
        low=low,
        high=high,
    )


def crossings_of(shallow: Curve, deep: Curve, *, neighbours: bool) -> tuple[Crossing, ...]:
    """The comparison of two curves; none where they share no range of sizes.

    One value, unless the two cross several times beyond doubt.
    """
    difference = difference_of(deep, shallow)
    if difference is None:
        return ()
    slope, _ = difference.slope()
    plain = Crossing(
        shallow=shallow.family.key,
        deep=deep.family.key,
        verdict="undecided",
        size=None,
        low=None,
        high=None,
        width=None,
        width_low=None,
        width_high=None,
        beyond=None,
        range=(math.exp(difference.low), math.exp(difference.high)),
        slope=slope,
        slope_probability=difference.slope_probability(),
        seeds=min(shallow.family.seeds, deep.family.seeds),
        seeds_needed=None,
        neighbours=neighbours,
        inflation=max(shallow.inflation, deep.inflation),
        number=0,
        times=0,
    )
    roots = _roots(plain, difference)
    if not roots:
        return (_without_crossing(plain, difference),)
    return tuple(
        _crossed(replace(plain, number=number, times=len(roots)), shallow, difference, root)
        for number, root in enumerate(roots, start=1)
    )


def _roots(plain: Crossing, difference: Difference) -> tuple[tuple[float, bool], ...]:
    """Several where each side of each is told from zero; else one, where slopes differ."""
    several = told_roots(difference)
    if len(several) > 1:
        return several
    falling = plain.slope < 0
    root = root_of(difference, falling=falling) if _is_sloped(plain) else None
    return () if root is None else ((root, falling),)


def _is_sloped(plain: Crossing) -> bool:
    return plain.slope_probability < SIGNIFICANT


def draws_of(crossing: Crossing, shallow: Curve, deep: Curve) -> CrossingDraws:
    """The resampled crossing: each difference at the root, over the slope there."""
    import numpy as np

    assert crossing.size is not None
    assert crossing.width is not None
    difference = difference_of(deep, shallow)
    assert difference is not None
    root, near = math.log(crossing.size), 1e-4
    points = np.array([root - near, root, root + near])
    before, _, after = difference.mean(points)
    local = float(after - before) / (2 * near)
    moved = -difference.resampled(points[1:2])[:, 0] / local
    return CrossingDraws(crossing=crossing, log_widths=math.log(crossing.width) + moved / 2)


def _crossed(
    plain: Crossing, shallow: Curve, difference: Difference, root: tuple[float, bool]
) -> Crossing:
    def width(log_size: float | None) -> float | None:
        return None if log_size is None else shallow.family.width_at(log_size)

    at, falling = root
    span = span_about(difference, at)
    return replace(
        plain,
        verdict="deeper wins above" if falling else "shallower wins above",
        size=math.exp(at),
        low=None if span.low is None else math.exp(span.low),
        high=None if span.high is None else math.exp(span.high),
        width=width(at),
        width_low=width(span.low),
        width_high=width(span.high),
    )


def _without_crossing(plain: Crossing, difference: Difference) -> Crossing:
    """Who wins where there is no crossing, and on which side one would lie; or what would tell."""
    heights = difference.mean(difference.grid())
    is_one_sided = bool(all(heights < 0) or all(heights > 0))
    deeper = bool(heights[0] < 0)
    beyond: Literal["below", "above"] | None = None
    if is_one_sided and _is_sloped(plain):
        beyond = "below" if deeper == (plain.slope < 0) else "above"
    undecided = undecided_points(difference)
    if is_one_sided and not len(undecided):
        verdict: Verdict = "deeper wins everywhere" if deeper else "shallower wins everywhere"
        return replace(plain, beyond=beyond, verdict=verdict)
    # Where one wins somewhere, the question is whether the other does where it comes nearest.
    effect = difference.slope()
    if len(undecided) < len(heights):
        effect = difference.height(nearest_point(difference))
    return replace(plain, beyond=beyond, seeds_needed=seeds_needed(*effect, plain.seeds))


def pairs(curves: Sequence[Curve]) -> tuple[tuple[Curve, Curve, bool], ...]:
    """Shallow and deep curves that differ in nothing but depth, and whether they are neighbours."""
    found = []
    for shallow in curves:
        key = shallow.family.key
        same = [
            other
            for other in curves
            if other.family.key.depth > key.depth
            and replace(other.family.key, depth=key.depth) == key
        ]
        nearest = min((other.family.key.depth for other in same), default=0)
        found += [(shallow, other, other.family.key.depth == nearest) for other in same]
    return tuple(found)
