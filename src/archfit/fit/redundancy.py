"""The size of the network without the bottleneck that reaches the same loss.

    redundancy = 1 - N* / N

N* is where the baseline's curve passes the bottlenecked cell's loss.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archfit.fit.cells import Cell
from archfit.fit.curves import Curve
from archfit.fit.families import Family, FamilyKey
from archfit.fit.forms import Reals
from archfit.fit.noise import Noise
from archfit.fit.resample import RESAMPLES, generator, scales
from archfit.fit.roots import Difference, root_of, span_about
from archfit.spec import Factorised


@dataclass(frozen=True, kw_only=True, slots=True)
class Redundancy:
    """What a bottleneck costs one cell, as a share of its block parameters.

    `value` is None where the baseline has no size of this loss; `low` or `high` is None where the
    baseline's sizes end before the interval does.
    """

    kind: Literal["rank", "attention"]
    bottleneck: tuple[str, ...]  # the tables that are factorised; or attention
    ratio: float  # rank over width, or H d_a over width
    family: FamilyKey
    cell: Cell
    baseline_depths: tuple[int, ...]
    baseline_is_limited: bool  # its vocabulary or patch has fewer dimensions than its width
    value: float | None
    low: float | None
    high: float | None
    seeds: int  # the fewest of any cell
    is_best_depth: bool  # of its ratio


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
        import numpy as np

        chosen = self._heights(points).argmin(axis=0)
        losses = np.empty((RESAMPLES, len(points)))
        for at, curve in enumerate(self.curves):
            losses[:, chosen == at] = curve.resampled(points[chosen == at])
        return losses

    def _heights(self, points: Reals) -> Reals:
        """The loss of each curve; those that have no such sizes stand aside for those that do."""
        import numpy as np

        heights, outside = [], []
        for curve in self.curves:
            low, high = curve.family.log_range
            heights.append(curve.mean(points))
            outside.append(np.maximum(0, np.maximum(low - points, points - high)))
        far = np.array(outside)
        return np.where(far > far.min(axis=0) + 1e-9, np.inf, np.array(heights))


def redundancies(
    families: Iterable[Family], curves: Sequence[Curve], noise: Noise, seed: int
) -> tuple[Redundancy, ...]:
    """All cells with a bottleneck whose baseline has a curve."""
    found = []
    for family in families:
        if family.key.factorised:
            wanted = family.key.with_full_tables
            chosen = [curve for curve in curves if curve.family.key == wanted]
            found += _of_family(family, chosen, noise, seed)
        if family.key.attention_step:
            found += _of_family(family, _usual_attention(family.key, curves), noise, seed)
    return _with_best_depths(found)


def _usual_attention(key: FamilyKey, curves: Sequence[Curve]) -> list[Curve]:
    """Curves of any depth with heads that are together as wide as the stream."""
    wanted = replace(key, attention_step=0, depth=1)
    return [curve for curve in curves if replace(curve.family.key, depth=1) == wanted]


def _of_family(
    family: Family, baselines: Sequence[Curve], noise: Noise, seed: int
) -> list[Redundancy]:
    if not baselines:
        return []
    envelope = Envelope(curves=tuple(baselines))
    is_rank = baselines[0].family.key.attention_step == family.key.attention_step
    plain = Redundancy(
        kind="rank" if is_rank else "attention",
        bottleneck=family.key.factorised if is_rank else ("attention",),
        ratio=1.0,
        family=family.key,
        cell=family.cells[0],
        baseline_depths=tuple(curve.family.key.depth for curve in baselines),
        baseline_is_limited=_is_limited(baselines),
        value=None,
        low=None,
        high=None,
        seeds=min(curve.family.seeds for curve in baselines),
        is_best_depth=True,
    )
    return [
        _measured(
            replace(
                plain, cell=cell, ratio=_ratio(cell, plain), seeds=min(plain.seeds, cell.seeds)
            ),
            _difference(cell, envelope, noise, seed),
        )
        for cell in family.cells
    ]


def _is_limited(baselines: Sequence[Curve]) -> bool:
    return any(
        cell.architecture.input.dimensions < cell.architecture.width
        for curve in baselines
        for cell in curve.family.cells
    )


def _ratio(cell: Cell, plain: Redundancy) -> float:
    if plain.kind == "attention":
        return cell.architecture.attention_ratio
    table = getattr(cell.architecture, plain.bottleneck[0])
    assert isinstance(table, Factorised)
    width = cell.architecture.width
    return min(table.inner, width) / width


def _difference(cell: Cell, envelope: Envelope, noise: Noise, seed: int) -> Difference:
    """Baseline less cell: zero at N*."""
    random = generator(seed, (cell.architecture, cell.data_hash, cell.recipe))
    pool, group = noise.pool(cell), (noise.data_hash, noise.recipe)
    spread = scales(seed, group if pool is noise.usual else (*group, "noisy"), pool.degrees)
    errors = noise.error(cell) * spread * random.standard_normal(RESAMPLES)
    low, high = envelope.log_range
    return Difference(
        mean=lambda points: envelope.mean(points) - cell.mean,
        resampled=lambda points: envelope.resampled(points) - cell.mean - errors[:, None],
        low=low,
        high=high,
    )


def _measured(plain: Redundancy, difference: Difference) -> Redundancy:
    import numpy as np

    def saved(log_size: float | None) -> float | None:
        return None if log_size is None else 1 - math.exp(log_size) / plain.cell.size

    root = root_of(difference, falling=True)
    if root is None:  # what the edge of the baseline still says
        is_worse = float(difference.mean(np.array([difference.low]))[0]) < 0
        edge = difference.low if is_worse else difference.high
        span = span_about(difference, edge)
        return replace(
            plain,
            low=saved(span.high) if is_worse else None,
            high=None if is_worse else saved(span.low),
        )
    span = span_about(difference, root)
    return replace(plain, value=saved(root), low=saved(span.high), high=saved(span.low))


def _with_best_depths(found: Sequence[Redundancy]) -> tuple[Redundancy, ...]:
    """The same, where attention ratios know which depth serves them best."""
    shares: dict[object, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for item in found:
        if item.value is not None:
            shares[_question(item)][item.family.depth].append(item.value)
    best = {
        question: min(depths, key=lambda depth: math.fsum(depths[depth]) / len(depths[depth]))
        for question, depths in shares.items()
    }
    marked = (
        replace(
            item,
            is_best_depth=item.kind == "rank"
            or best.get(_question(item), item.family.depth) == item.family.depth,
        )
        for item in found
    )
    return tuple(
        sorted(
            marked,
            key=lambda item: (
                item.kind,
                item.bottleneck,
                item.family.depth,
                item.ratio,
                item.cell.size,
            ),
        )
    )


def _question(item: Redundancy) -> object:
    return item.kind, replace(item.family, depth=1)
