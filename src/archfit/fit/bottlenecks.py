"""The size of the network without the bottleneck that reaches the same loss.

    redundancy = 1 - N* / N

N* is where the baseline's curve passes the bottlenecked cell's loss.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archfit.fit.cells import CellResult, FamilyKey, WidthFamily
from archfit.fit.curves import RESAMPLES, Curve, Reals, ResampledDifference, generator, scales
from archfit.fit.noise import Noise
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Envelope:
    """The best of several curves at each size, which the estimates choose and resamples keep.

    If each resample chose anew, the least of several noisy numbers would be too low twice.
    """

    curves: tuple[Curve, ...]

    @property
    def log_range(self) -> tuple[float, float]:
        """Sizes that any of them has."""
        ranges = [curve.family.log_range for curve in self.curves]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def mean(self, points: Reals) -> Reals:
        """The loss at each ln N."""
        return self._heights(points).min(axis=0)  # type: ignore[no-any-return]  # numpy's

    def resampled(self, points: Reals) -> Reals:
        """The loss at each ln N in each resample."""
        chosen = self._heights(points).argmin(axis=0)
        losses = np.empty((RESAMPLES, len(points)))
        for at, curve in enumerate(self.curves):
            losses[:, chosen == at] = curve.resampled(points[chosen == at])
        return losses

    def _heights(self, points: Reals) -> Reals:
        """The loss of each curve; those that have no such sizes stand aside for those that do."""
        heights, outside = [], []
        for curve in self.curves:
            low, high = curve.family.log_range
            heights.append(curve.mean(points))
            outside.append(np.maximum(0, np.maximum(low - points, points - high)))
        far = np.array(outside)
        return np.where(far > far.min(axis=0) + 1e-9, np.inf, np.array(heights))


def redundancies(
    families: Iterable[WidthFamily], curves: Sequence[Curve], noise: Noise, seed: int
) -> tuple[MeasuredRedundancy, ...]:
    """All cells with a bottleneck whose baseline has a curve."""
    found: list[MeasuredRedundancy] = []
    for family in families:
        key = family.key
        if key.factorised:
            same = [curve for curve in curves if curve.family.key == key.with_full_tables]
            found += _of_family(family, same, noise, seed)
        if key.attention_step:  # curves of any depth, with heads as wide as the stream
            usual = replace(key, attention_step=0).any_depth
            same = [curve for curve in curves if curve.family.key.any_depth == usual]
            found += _of_family(family, same, noise, seed)
    return _with_best_depths(found)


def _of_family(
    family: WidthFamily, baselines: Sequence[Curve], noise: Noise, seed: int
) -> list[MeasuredRedundancy]:
    if not baselines:
        return []
    envelope = Envelope(curves=tuple(baselines))
    is_rank = baselines[0].family.key.attention_step == family.key.attention_step
    baseline_cells = [cell for curve in baselines for cell in curve.family.cells]
    shapes = [cell.architecture for cell in baseline_cells]

    def ratio(cell: CellResult) -> float:
        shape, width = cell.architecture, cell.architecture.width
        inner: int = getattr(shape, family.key.factorised[0]).inner if is_rank else 0
        return min(inner, width) / width if is_rank else shape.attention_ratio

    return [
        MeasuredRedundancy(
            kind="rank" if is_rank else "attention",
            bottleneck=family.key.factorised if is_rank else ("attention",),
            ratio=ratio(cell),
            family=family.key,
            cell=cell,
            baseline_depths=tuple(curve.family.key.depth for curve in baselines),
            baseline_is_limited=any(shape.input.dimensions < shape.width for shape in shapes),
            estimate=_share(cell, _difference(cell, envelope, noise, seed)),
            seeds=min(other.seeds for other in (cell, *baseline_cells)),
        )
        for cell in family.cells
    ]


def _difference(
    cell: CellResult, envelope: Envelope, noise: Noise, seed: int
) -> ResampledDifference:
    """Baseline less cell: zero at N*."""
    random = generator(seed, cell.text)
    pool, group = noise.pool(cell), (noise.data_hash, noise.recipe)
    spread = scales(seed, group if pool is noise.usual else (*group, "noisy"), pool.degrees)
    errors = noise.error(cell) * spread * random.standard_normal(RESAMPLES)
    return ResampledDifference(
        mean=lambda points: envelope.mean(points) - cell.mean,
        resampled=lambda points: envelope.resampled(points) - cell.mean - errors[:, None],
        log_range=envelope.log_range,
    )


def _share(cell: CellResult, difference: ResampledDifference) -> Estimate:
    """What the network without the bottleneck saves; the larger it is, the less."""

    def saved(log_size: float | None) -> float | None:
        return None if log_size is None else 1 - math.exp(log_size) / cell.size

    root = difference.root(falling=True)
    if root is not None:
        size = difference.interval_about(root)
        return Estimate(value=saved(root), low=saved(size.high), high=saved(size.low))
    smallest, largest = difference.log_range  # what the edge of the baseline still says
    if float(difference.mean(np.array([smallest]))[0]) < 0:
        at_least = saved(difference.interval_about(smallest).high)
        return Estimate(value=None, low=at_least, high=None)
    return Estimate(value=None, low=None, high=saved(difference.interval_about(largest).low))


def _with_best_depths(found: Sequence[MeasuredRedundancy]) -> tuple[MeasuredRedundancy, ...]:
    """The same, where attention ratios know which depth serves them best."""
    shares: dict[object, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for item in found:
        if item.kind == "attention" and item.estimate.value is not None:
            shares[item.family.any_depth][item.family.depth].append(item.estimate.value)
    best = {
        question: min(depths, key=lambda depth: math.fsum(depths[depth]) / len(depths[depth]))
        for question, depths in shares.items()
    }

    def is_best(item: MeasuredRedundancy) -> bool:
        depth = item.family.depth
        return item.kind == "rank" or best.get(item.family.any_depth, depth) == depth

    def order(item: MeasuredRedundancy) -> tuple[object, ...]:
        return item.kind, item.bottleneck, item.family.depth, item.ratio, item.cell.size

    marked = (replace(item, is_best_depth=is_best(item)) for item in found)
    return tuple(sorted(marked, key=order))
