"""The size of the network without the bottleneck that reaches the same loss.

    redundancy = 1 - N* / N

N* is where the baseline's curve passes the bottlenecked cell's loss.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import fmean
from typing import Literal

from archfit.fit.cells import RATIO_STEP, CellResult, FamilyKey, WidthFamily, grouped
from archfit.fit.curves import RESAMPLES, Curve, Reals, ResampledDifference, generator, scales
from archfit.fit.noise import Noise
from archfit.spec import Architecture
from archfit.spec import lazy_numpy as np
from archfit.spec.estimate import Estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRedundancy:
    """What a bottleneck costs one cell, as a share of its block parameters."""

    kind: Literal["rank", "attention"]
    bottleneck: tuple[str, ...]  # the tables that are factorised; or attention
    ratio: float  # rank over width, or H d_a over width
    family: FamilyKey
    cell: CellResult
    baseline_depths: tuple[int, ...]
    baseline_is_limited: bool  # its vocabulary or patch has fewer dimensions than its width
    estimate: Estimate  # no value where the baseline has no size of this loss; open where it ends
    seeds: int  # the fewest of any cell
    is_best_depth: bool = True  # of its ratio

    @property
    def outcome(self) -> Literal["value", "at least", "at most", "unknown"]:
        """What is known: a value, an end of the interval alone, or nothing."""
        if self.estimate.value is not None:
            return "value"
        if self.estimate.low is not None:
            return "at least"
        return "unknown" if self.estimate.high is None else "at most"


def redundancies(
    families: Iterable[WidthFamily], curves: Sequence[Curve], noise: Noise
) -> tuple[MeasuredRedundancy, ...]:
    """All cells with a bottleneck whose baseline has a curve."""
    found: list[MeasuredRedundancy] = []
    for family in families:
        key = family.key
        if key.factorised:
            same = [curve for curve in curves if curve.family.key == key.with_full_tables]
            found += _of_family(family, key.factorised, same, noise)
        if key.attention_step:  # curves of any depth, with heads as wide as the stream
            plain = replace(key, attention_step=0).any_depth
            # The feed-forward layer is the same, or shrinks with the heads, as units do in T5.
            fewer = round(key.feed_forward_multiple / math.exp(key.attention_step * RATIO_STEP))
            usual = plain, replace(plain, feed_forward_multiple=fewer)
            same = [curve for curve in curves if curve.family.key.any_depth in usual]
            found += _of_family(family, (), same, noise)
    order = attrgetter("kind", "bottleneck", "family.depth", "ratio", "cell.size")
    return tuple(sorted(_with_best_depths(found), key=order))


def _of_family(
    family: WidthFamily, tables: tuple[str, ...], baselines: Sequence[Curve], noise: Noise
) -> list[MeasuredRedundancy]:
    """What these tables cost each cell of a family; without any, what wide attention does."""
    if not baselines:
        return []
    baseline_cells = [cell for curve in baselines for cell in curve.family.cells]
    shapes = [cell.architecture for cell in baseline_cells]

    def ratio(shape: Architecture) -> float:
        if not tables:
            return shape.attention_ratio
        inner: int = getattr(shape, tables[0]).inner
        return min(inner, shape.width) / shape.width

    return [
        MeasuredRedundancy(
            kind="rank" if tables else "attention",
            bottleneck=tables or ("attention",),
            ratio=ratio(cell.architecture),
            family=family.key,
            cell=cell,
            baseline_depths=tuple(curve.family.key.depth for curve in baselines),
            baseline_is_limited=any(shape.input.dimensions < shape.width for shape in shapes),
            estimate=_share(cell, _difference(cell, baselines, noise)),
            seeds=min(other.seeds for other in (cell, *baseline_cells)),
        )
        for cell in family.cells
    ]


def _difference(cell: CellResult, curves: Sequence[Curve], noise: Noise) -> ResampledDifference:
    """Baseline less cell: zero at N*.

    The baseline is the best of several curves at each size, which the estimates choose and
    resamples keep: if each chose anew, the least of several noisy numbers would be too low twice.
    """
    random, ranges = generator(cell.text), [curve.family.log_range for curve in curves]
    pool, group = noise.pool(cell), (noise.data_hash, noise.recipe)
    spread = scales(group if pool is noise.usual else (*group, "noisy"), pool.degrees)
    errors = noise.error(cell) * spread * random.standard_normal(RESAMPLES)

    def heights(points: Reals) -> Reals:
        """The loss of each curve; those that have no such sizes stand aside for those that do."""
        beyond = [np.maximum(low - points, points - high) for low, high in ranges]
        far = np.maximum(0, np.array(beyond))
        losses = np.array([curve.mean(points) for curve in curves])
        return np.where(far > far.min(axis=0) + 1e-9, np.inf, losses)

    def resampled(points: Reals) -> Reals:
        chosen, losses = heights(points).argmin(axis=0), np.empty((RESAMPLES, len(points)))
        for at, curve in enumerate(curves):
            losses[:, chosen == at] = curve.resampled(points[chosen == at])
        return losses - cell.mean - errors[:, None]

    return ResampledDifference(
        mean=lambda points: heights(points).min(axis=0) - cell.mean,
        resampled=resampled,
        log_range=(min(low for low, _ in ranges), max(high for _, high in ranges)),
    )


def _share(cell: CellResult, difference: ResampledDifference) -> Estimate:
    """What the network without the bottleneck saves; the larger it is, the less."""

    def saved(log_size: float | None) -> float | None:
        return None if log_size is None else 1 - math.exp(log_size) / cell.size

    root, (smallest, largest) = difference.root(falling=True), difference.log_range
    if root is not None:
        size = difference.interval_about(root)
        return Estimate(value=saved(root), low=saved(size.high), high=saved(size.low))
    # What the edge of the baseline still says.
    if float(difference.mean(np.array([smallest]))[0]) < 0:
        at_least = saved(difference.interval_about(smallest).high)
        return Estimate(value=None, low=at_least, high=None)
    return Estimate(value=None, low=None, high=saved(difference.interval_about(largest).low))


def _with_best_depths(found: Sequence[MeasuredRedundancy]) -> Iterator[MeasuredRedundancy]:
    """The same, where attention ratios know which depth serves them best."""
    known = (item for item in found if item.kind == "attention" and item.outcome == "value")
    shares = grouped(known, lambda item: item.family)
    best: dict[FamilyKey, FamilyKey] = {}
    for family in sorted(shares, key=lambda f: fmean(i.estimate.value or 0 for i in shares[f])):
        best.setdefault(family.any_depth, family)
    for item in found:
        chosen = best.get(item.family.any_depth, item.family)
        yield replace(item, is_best_depth=item.kind == "rank" or item.family == chosen)
