"""Which depth wins at equal size: where one overtakes another, and which is best."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from archfit.fit.cells import FamilyKey, WidthFamily, grouped, of_one_size
from archfit.fit.curves import ONE_SIGMA, Curve, Reals, ResampledDifference
from archfit.fit.noise import Noise, seeds_needed, tail_of_best
from archfit.spec import lazy_numpy as np
from archfit.spec.estimate import UNKNOWN, Estimate

SIGNIFICANT = 0.05  # two-sided, for the difference in slope
SIZES = 5  # at which curves are compared
SAME_SIZE = 0.03  # cells that differ by less are compared as they are

Outcome = Literal[
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
    verdict: Outcome = "undecided"
    size: Estimate = UNKNOWN  # block parameters; without a value where there is no crossing
    width: Estimate = UNKNOWN  # of the shallow network
    beyond: Literal["below", "above"] | None = None  # where a crossing out of range would lie
    range: tuple[float, float]  # sizes that both have
    slope: float  # of deep - shallow, nats per e-fold of size
    slope_probability: float
    seeds: int  # the fewest of any cell
    seeds_needed: int | None = None  # to settle it; None where it is settled, or above 1000
    neighbours: bool  # no depth between the two was trained
    inflation: float  # the larger of the two curves'
    number: int = 0  # of this crossing, smallest size first; 0 without one
    times: int = 0  # that the two cross in range
    log_widths: "Reals | None" = field(default=None, compare=False, repr=False)  # in each resample

    @property
    def is_crossing(self) -> bool:
        """Whether there is one in range."""
        return self.size.value is not None

    @property
    def is_sloped(self) -> bool:
        """Whether the difference changes with size beyond doubt."""
        return self.slope_probability < SIGNIFICANT


def crossings_of(shallow: Curve, deep: Curve, *, neighbours: bool) -> tuple[Crossing, ...]:
    """The comparison of two curves; none where they share no range of sizes.

    One value, unless the two cross several times beyond doubt.
    """
    lows, highs = zip(deep.family.log_range, shallow.family.log_range, strict=True)
    low, high = max(lows), min(highs)
    if not low < high:
        return ()
    difference = ResampledDifference(
        mean=lambda points: deep.mean(points) - shallow.mean(points),
        resampled=lambda points: deep.resampled(points) - shallow.resampled(points),
        log_range=(low, high),
    )
    plain = Crossing(
        shallow=shallow.family.key,
        deep=deep.family.key,
        range=(math.exp(low), math.exp(high)),
        slope=difference.slope()[0],
        slope_probability=difference.slope_probability(),
        seeds=min(shallow.family.seeds, deep.family.seeds),
        neighbours=neighbours,
        inflation=max(shallow.fits.inflation, deep.fits.inflation),
    )
    roots = difference.sign_changes()  # several where each side of each is told from zero
    if len(roots) < 2:  # else one, where slopes differ
        falling = plain.slope < 0
        root = difference.root(falling=falling) if plain.is_sloped else None
        roots = [] if root is None else [(root, falling)]
    if not roots:
        return (_without_crossing(plain, difference),)
    found = []
    for number, (root, falling) in enumerate(roots, start=1):
        log_size = difference.interval_about(root)
        crossing = replace(
            plain,
            verdict="deeper wins above" if falling else "shallower wins above",
            size=log_size.rising(math.exp),
            width=log_size.rising(shallow.family.width_at),
            number=number,
            times=len(roots),
            log_widths=math.log(shallow.family.width_at(root)) + _moved(root, difference) / 2,
        )
        found.append(crossing)
    return tuple(found)


def _moved(root: float, difference: ResampledDifference) -> Reals:
    """By how much ln N each resample is zero elsewhere: its height at the root over the slope."""
    near = 1e-4
    before, after = difference.mean(np.array([root - near, root + near]))
    return -difference.resampled(np.array([root]))[:, 0] / (float(after - before) / (2 * near))


def _without_crossing(plain: Crossing, difference: ResampledDifference) -> Crossing:
    """Who wins where there is no crossing, and on which side one would lie; or what would tell."""
    points = difference.grid()
    heights, (_, may_be_zero) = difference.mean(points), difference.below_zero(points)
    is_one_sided = bool(all(heights < 0) or all(heights > 0))
    deeper = bool(heights[0] < 0)
    beyond: Literal["below", "above"] | None = None
    if is_one_sided and plain.is_sloped:
        beyond = "below" if deeper == (plain.slope < 0) else "above"
    if is_one_sided and not may_be_zero.any():
        verdict: Outcome = "deeper wins everywhere" if deeper else "shallower wins everywhere"
        return replace(plain, beyond=beyond, verdict=verdict)
    # Where one wins somewhere, the question is whether the other does where it comes nearest.
    effect = difference.slope()
    if not may_be_zero.all():
        effect = difference.height(difference.nearest_point())
    return replace(plain, beyond=beyond, seeds_needed=seeds_needed(*effect, plain.seeds))


def crossings(curves: Sequence[Curve]) -> tuple[Crossing, ...]:
    """Of all pairs of curves that differ in nothing but depth."""
    found: list[Crossing] = []
    for shallow in curves:
        key = shallow.family.key
        same = [curve for curve in curves if curve.family.key.any_depth == key.any_depth]
        deeper = [curve for curve in same if curve.family.key.depth > key.depth]
        for deep in deeper:
            is_nearest = all(deep.family.key.depth <= each.family.key.depth for each in deeper)
            found += crossings_of(shallow, deep, neighbours=is_nearest)
    return tuple(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class BestDepth:
    """The depth of least loss at one size."""

    family: FamilyKey  # of the best
    size: float
    ties: tuple[int, ...]  # depths that cannot be told from it
    depths: tuple[int, ...]  # all that were compared
    seeds: int  # the fewest of any cell
    seeds_needed: int | None  # to tell it from the nearest tie; None without ties, or above 1000

    @property
    def estimate(self) -> Estimate:
        """The best depth, from the shallowest to the deepest that may be best."""
        may_be = (self.family.depth, *self.ties)
        return Estimate(value=self.family.depth, low=min(may_be), high=max(may_be))


def best_depths(
    families: Iterable[WidthFamily], curves: Sequence[Curve], noise: Noise
) -> tuple[BestDepth, ...]:
    """From curves where several depths have one, else from cells of about the same size."""
    by_question = grouped(families, lambda family: family.key.any_depth)
    return tuple(
        best
        for members in by_question.values()
        for best in _from_curves([curve for curve in curves if curve.family in members])
        or _from_cells(members, noise)
    )


def _from_curves(curves: Sequence[Curve]) -> list[BestDepth]:
    if len(curves) < 2:
        return []
    lows, highs = zip(*(curve.family.log_range for curve in curves), strict=True)
    low, high = max(lows), min(highs)
    if low >= high:  # no size is common to all: those that two have
        low, high = sorted(lows)[1], sorted(highs)[-2]
    found = []
    for point in np.linspace(low, high, SIZES):
        is_there = (np.array(lows) - 1e-9 <= point) & (point <= np.array(highs) + 1e-9)
        there = [*itertools.compress(curves, is_there)]
        found += [_at(float(point), there)] if len(there) > 1 else []
    return found


def _at(point: float, curves: Sequence[Curve]) -> BestDepth:
    """The best of the curves that have this ln N."""
    at = np.array([point])
    best = min(curves, key=lambda curve: float(curve.mean(at)[0]))
    tail = tail_of_best(len(curves))
    ties = {}
    for other in curves:
        draws = other.resampled(at)[:, 0] - best.resampled(at)[:, 0]
        if other is not best and float((draws < 0).mean()) > tail:
            gap = float(other.mean(at)[0] - best.mean(at)[0])
            error = float(np.quantile(draws, ONE_SIGMA[1]) - np.median(draws))
            ties[other.family.key.depth] = gap, error
    seeds = {curve.family.key.depth: curve.family.seeds for curve in curves}
    return _best(best.family.key, math.exp(point), seeds, ties, tail)


def _from_cells(families: Sequence[WidthFamily], noise: Noise) -> list[BestDepth]:
    """The best of each cluster of cells of about one size that has several depths."""
    members = [(cell, family.key) for family in families for cell in family.cells]
    members.sort(key=lambda member: member[0].size)
    found = []
    for cluster in of_one_size(members, lambda member: member[0].size, SAME_SIZE):
        ordered = sorted(cluster, key=lambda member: member[0].mean)
        by_depth = {key.depth: cell for cell, key in reversed(ordered)}  # the best of each
        if len(by_depth) < 2:
            continue
        (best, key), tail, ties = ordered[0], tail_of_best(len(by_depth)), {}
        for depth, cell in by_depth.items():
            gap, error = cell.mean - best.mean, noise.error(cell, best)
            if depth != key.depth and gap <= noise.t(cell, best, tail=tail) * error:
                ties[depth] = gap, error
        seeds = {depth: cell.seeds for depth, cell in by_depth.items()}
        found.append(_best(key, float(best.size), seeds, ties, tail))
    return found


def _best(
    family: FamilyKey,
    size: float,
    seeds: Mapping[int, int],  # by depth
    ties: Mapping[int, tuple[float, float]],  # by depth: how much worse, and the error of that
    tail: float,
) -> BestDepth:
    fewest = min(seeds.values())
    needed = seeds_needed(*min(ties.values()), fewest, tail=tail) if ties else None
    return BestDepth(
        family=family,
        size=size,
        ties=tuple(sorted(ties)),
        depths=tuple(sorted(seeds)),
        seeds=fewest,
        seeds_needed=needed,
    )
