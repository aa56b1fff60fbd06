"""Cells against cells, with intervals from seeds.

Contrasts: cells of one shape that differ in their tables, which say which rank hurts and on which
side, in nats per token. Rankings: networks of equal size that read different tokens (vocabularies,
k-mers, patches) compare in bits per byte of the source. The tokens of a patch are predicted at
once, so a patch starts with a handicap that more depth or a larger vocabulary does not have.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from archfit.fit.cells import CellResult, FamilyKey, key_of, of_one_size, without_rate
from archfit.fit.noise import TAIL, Noise, noise_among, seeds_needed, tail_of_best
from archfit.spec import Architecture, Factorised, Full, Rotary
from archfit.spec.estimate import Estimate

Names: TypeAlias = tuple[str, ...]
TOLERANCE = 0.06  # of all parameters, by which sizes that were matched may differ


@dataclass(frozen=True, kw_only=True, slots=True)
class CellDifference:
    """The loss of one cell less that of another."""

    first: CellResult
    second: CellResult
    estimate: Estimate  # nats per token of contrasts; bits per byte otherwise
    is_settled: bool  # the two are told apart, as strictly as their number demands
    seeds_needed: int | None  # to settle it; None where it is settled, or above 1000

    @property
    def seeds(self) -> int:
        """Those of the cell that has fewer."""
        return min(self.first.seeds, self.second.seeds)


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """A cell with factorised tables against one whose tables differ, everything else the same."""

    kind: Literal["cost", "side"]  # against tables without limit; or another table that has it
    first: FamilyKey  # of the cell that is limited
    second: FamilyKey  # of the cell that it is compared with
    width: int  # of both
    rank: int  # the least inner size of the first's factorised tables; a control's is no limit
    difference: CellDifference
    stds: float  # the difference in standard deviations of one run, as the papers say it


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """Networks of about as many parameters, the best first, each against the best."""

    results: tuple[CellDifference, ...]
    degrees: int  # of freedom, of the noise

    @property
    def best(self) -> CellResult:
        """The network of the fewest bits per byte."""
        return self.results[0].first


def contrasts(cells: Iterable[CellResult], noise: Noise) -> tuple[Contrast, ...]:
    """Every cell with factorised tables against full ones, and against the other side's."""
    by_shape = {cell.architecture: cell for cell in cells}
    controls = _controls(by_shape.values())
    found = []
    for shape, cell in by_shape.items():
        names = key_of(cell).factorised
        full = with_full(shape, names)
        unlimited = by_shape.get(full, controls.get((full, names)))
        if unlimited is not None and unlimited is not cell:
            found.append(contrast("cost", difference_of(cell, unlimited, noise), noise.std))
        if names == ("embedding",):  # the other tables with the rank that the embedding has
            others = [replace(full, head=shape.embedding)]
            if not isinstance(shape.positions, Rotary):
                others.append(replace(full, positions=shape.embedding))
            sides = [difference_of(cell, by_shape[o], noise) for o in others if o in by_shape]
            found += [contrast("side", side, noise.std) for side in sides]
    return tuple(sorted(found, key=lambda c: (c.kind, c.first.factorised, c.width, c.rank)))


def with_full(shape: Architecture, names: Iterable[str]) -> Architecture:
    """The same shape with these tables full."""
    return replace(shape, **dict.fromkeys(names, Full()))  # type: ignore[arg-type]  # tables


def _controls(cells: Iterable[CellResult]) -> dict[tuple[Architecture, Names], CellResult]:
    """Of each shape and set of factorised tables, the cell whose inner sizes limit nothing.

    It stands in where full tables were not trained; of several, that of the least inner size.
    """
    found: dict[tuple[Architecture, Names], CellResult] = {}
    for cell in sorted(cells, key=rank_of):
        names = key_of(cell).factorised
        if names and rank_of(cell) >= cell.architecture.width:
            found.setdefault((with_full(cell.architecture, names), names), cell)
    return found


def rank_of(cell: CellResult) -> int:
    """The least inner size of its factorised tables; 0 where all are full."""
    tables = (getattr(cell.architecture, name) for name in key_of(cell).factorised)
    return min((table.inner for table in tables if isinstance(table, Factorised)), default=0)


def contrast(kind: Literal["cost", "side"], difference: CellDifference, std: float) -> Contrast:
    """The contrast of two cells whose runs have this standard deviation."""
    first, second = difference.first, difference.second
    return Contrast(
        kind=kind,
        first=key_of(first),
        second=key_of(second),
        width=first.architecture.width,
        rank=rank_of(first),
        difference=difference,
        stds=(first.mean - second.mean) / std,
    )


def difference_of(
    first: CellResult,
    second: CellResult,
    noise: Noise,
    *,
    tail: float = TAIL,  # that decides
    interval_tail: float = TAIL,
) -> CellDifference:
    """The loss of the first less that of the second, whose runs have this noise."""
    value, error = first.mean - second.mean, noise.error(first, second) * (first is not second)
    half = noise.t(first, second, tail=interval_tail) * error
    is_settled = abs(value) > noise.t(first, second, tail=tail) * error
    needed = seeds_needed(value, error, min(first.seeds, second.seeds), tail=tail)
    return CellDifference(
        first=first,
        second=second,
        estimate=Estimate(value=value, low=value - half, high=value + half),
        is_settled=is_settled,
        seeds_needed=None if is_settled else needed,
    )


def differences(
    reference: CellResult, others: Sequence[CellResult], *, pooled: Sequence[CellResult], among: int
) -> tuple[CellDifference, ...]:
    """Bits per byte of each of the others less the reference's, whatever they read.

    The intervals hold together at 90 %: Bonferroni over `among` comparisons, more than are made
    here if the reference was itself chosen for its loss. The noise is that of the cells `pooled`.
    """
    noise, tail, against = noise_among([*map(in_bits, pooled)]), TAIL / among, in_bits(reference)
    found = (
        difference_of(c, against, noise, tail=tail, interval_tail=tail)
        for c in map(in_bits, others)
    )
    return tuple(found)


def rankings(cells: Iterable[CellResult]) -> tuple[Ranking, ...]:
    """Every set of networks of equal size that differ in what they read."""
    groups: dict[object, list[CellResult]] = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: (cell.architecture.params, repr(cell))):
        shape = cell.architecture
        groups[without_rate(cell.recipe), shape.context, shape.objective].append(cell)
    sizes = (of_one_size(g, lambda c: c.architecture.params, TOLERANCE) for g in groups.values())
    found = []
    for matched in itertools.chain.from_iterable(sizes):
        ranked = sorted(map(in_bits, matched), key=lambda cell: cell.bits_per_byte)
        noise, best = noise_among(ranked), ranked[0]
        readings = {(cell.data_hash, cell.architecture.input) for cell in matched}
        if len(readings) > 1 and noise.is_enough:
            # Worse than the best is what is so although that is the best of several by luck, too.
            tail = tail_of_best(len(ranked))
            against = (difference_of(cell, best, noise, tail=tail) for cell in ranked)
            found.append(Ranking(results=tuple(against), degrees=noise.degrees))
    return tuple(sorted(found, key=lambda ranking: ranking.best.architecture.params))


def in_bits(cell: CellResult) -> CellResult:
    """The same with losses in bits per byte, whose ratio to nats is that of the data set."""
    ratio = cell.bits_per_byte / cell.mean if cell.mean else 0.0
    return replace(cell, losses=tuple(loss * ratio for loss in cell.losses))
