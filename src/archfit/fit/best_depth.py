"""At equal size, which depth is best, and which cannot be told from it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from archfit.fit.cells import Cell
from archfit.fit.curves import Curve
from archfit.fit.families import Family, FamilyKey
from archfit.fit.noise import Noise
from archfit.fit.power import seeds_needed
from archfit.fit.resample import tail_of_best

SIZES = 5  # at which curves are compared
SAME_SIZE = 0.03  # cells that differ by less are compared as they are


@dataclass(frozen=True, kw_only=True, slots=True)
class BestDepth:
    """The depth of least loss at one size."""

    family: FamilyKey  # of the best
    size: float
    depth: int
    ties: tuple[int, ...]  # depths that cannot be told from it
    depths: tuple[int, ...]  # all that were compared
    seeds: int  # the fewest of any cell
    seeds_needed: int | None  # to tell it from the nearest tie; None without ties, or above 1000

    @property
    def low(self) -> int:
        """The shallowest that may be best."""
        return min(self.depth, *self.ties) if self.ties else self.depth

    @property
    def high(self) -> int:
        """The deepest that may be best."""
        return max(self.depth, *self.ties) if self.ties else self.depth


def best_depths(
    families: Iterable[Family], curves: Sequence[Curve], noise: Noise
) -> tuple[BestDepth, ...]:
    """From curves where several depths have one, else from cells of about the same size."""
    by_question: dict[FamilyKey, list[Family]] = defaultdict(list)
    for family in families:
        by_question[replace(family.key, depth=1)].append(family)
    found: list[BestDepth] = []
    for members in by_question.values():
        fitted = [curve for curve in curves if curve.family in members]
        from_curves = _from_curves(fitted)
        found += from_curves or _from_cells(members, noise)
    return tuple(found)


def _from_curves(curves: Sequence[Curve]) -> list[BestDepth]:
    import numpy as np

    if len(curves) < 2:
        return []
    lows, highs = zip(*(curve.family.log_range for curve in curves), strict=True)
    low, high = max(lows), min(highs)
    if low >= high:  # no size is common to all: those that two have
        low, high = sorted(lows)[1], sorted(highs)[-2]
    points = np.linspace(low, high, SIZES)
    return [best for point in points for best in _at(float(point), curves)]


def _at(point: float, curves: Sequence[Curve]) -> list[BestDepth]:
    import numpy as np

    there = [
        curve
        for curve in curves
        if curve.family.log_range[0] - 1e-9 <= point <= curve.family.log_range[1] + 1e-9
    ]
    if len(there) < 2:
        return []
    at = np.array([point])
    best = min(there, key=lambda curve: float(curve.mean(at)[0]))
    tail = tail_of_best(len(there))
    ties, needs = [], []
    for other in there:
        if other is best:
            continue
        draws = other.resampled(at)[:, 0] - best.resampled(at)[:, 0]
        if float((draws < 0).mean()) > tail:
            ties.append(other.family.key.depth)
            gap = float(other.mean(at)[0] - best.mean(at)[0])
            needs.append((gap, float(np.quantile(draws, 0.8413) - np.median(draws))))
    seeds = min(curve.family.seeds for curve in there)
    return [
        BestDepth(
            family=best.family.key,
            size=math.exp(point),
            depth=best.family.key.depth,
            ties=tuple(sorted(ties)),
            depths=tuple(curve.family.key.depth for curve in there),
            seeds=seeds,
            seeds_needed=seeds_needed(*min(needs), seeds, tail=tail) if needs else None,
        )
    ]


def _from_cells(families: Sequence[Family], noise: Noise) -> list[BestDepth]:
    members = [(cell, family.key) for family in families for cell in family.cells]
    members.sort(key=lambda member: member[0].size)
    clusters: list[list[tuple[Cell, FamilyKey]]] = []
    for member in members:
        if clusters and member[0].size <= clusters[-1][0][0].size * (1 + SAME_SIZE):
            clusters[-1].append(member)
        else:
            clusters.append([member])
    return [
        _of_cluster(cluster, noise)
        for cluster in clusters
        if len({key.depth for _, key in cluster}) > 1
    ]


def _of_cluster(cluster: Sequence[tuple[Cell, FamilyKey]], noise: Noise) -> BestDepth:
    ordered = sorted(cluster, key=lambda member: member[0].mean)
    by_depth = {key.depth: (cell, key) for cell, key in reversed(ordered)}  # the best of each
    (best, key), tail = ordered[0], tail_of_best(len(by_depth))
    ties, needs = [], []
    for depth, (cell, _) in by_depth.items():
        gap, error = cell.mean - best.mean, noise.error(cell, best)
        if depth != key.depth and gap <= noise.t(tail, cell, best) * error:
            ties.append(depth)
            needs.append((gap, error))
    seeds = min(cell.seeds for cell, _ in by_depth.values())
    return BestDepth(
        family=key,
        size=float(best.size),
        depth=key.depth,
        ties=tuple(sorted(ties)),
        depths=tuple(sorted(by_depth)),
        seeds=seeds,
        seeds_needed=seeds_needed(*min(needs), seeds, tail=tail) if needs else None,
    )
