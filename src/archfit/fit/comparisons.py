"""Cells against cells, with intervals from seeds.

Contrasts: cells of one shape that differ in their tables, which say which rank hurts and on which
side, in nats per token. Rankings: networks of equal size that read different tokens (vocabularies,
k-mers, patches) compare in bits per byte of the source. The tokens of a patch are predicted at
once, so a patch starts with a handicap that more depth or a larger vocabulary does not have.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal, TypeAlias

from archfit.fit.cells import CellResult, grouped, of_one_size, without_rate
from archfit.fit.noise import TAIL, Noise, noise_among, seeds_needed, tail_of_best
from archfit.spec import Architecture, Full, Rotary
from archfit.spec.estimate import Estimate

Names: TypeAlias = tuple[str, ...]
TOLERANCE = 0.06  # of all parameters, by which sizes that were matched may differ


@dataclass(frozen=True, kw_only=True, slots=True)
class CellDifference:
    """The loss of one cell less that of another.

    A contrast is that of a cell with factorised tables and one whose tables differ, everything else
    the same: one without limit, of which it is the cost, or one with a limit on another side.
    """

    kind: Literal["cost", "side", "size"] = "size"  # of a contrast; or of networks of equal size
    first: CellResult
    second: CellResult
    estimate: Estimate  # nats per token of contrasts; bits per byte otherwise
    stds: float  # the difference in standard deviations of one run, as the papers say it
    is_settled: bool  # the two are told apart, as strictly as their number demands
    seeds_needed: int | None  # to settle it; None where it is settled, or above 1000

    @property
    def seeds(self) -> int:
        """Those of the cell that has fewer."""
        return min(self.first.seeds, self.second.seeds)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """Networks of about as many parameters, the best first, each against the best."""

    results: tuple[CellDifference, ...]
    degrees: int  # of freedom, of the noise

    @property
    def best(self) -> CellResult:
        """The network of the fewest bits per byte."""
        return self.results[0].first


def contrasts(cells: Iterable[CellResult], noise: Noise) -> tuple[CellDifference, ...]:
    """Every cell with factorised tables against full ones, and against the other side's."""
    by_shape = {cell.architecture: cell for cell in cells}
    controls = _controls(by_shape.values())
    found = []
    for shape, cell in by_shape.items():
        names = cell.key.factorised
        full = with_full(shape, names)
        unlimited = by_shape.get(full, controls.get((full, names)))
        if unlimited is not None and unlimited is not cell:
            found.append(replace(difference_of(cell, unlimited, noise), kind="cost"))
        if names == ("embedding",):  # the other tables with the rank that the embedding has
            others = [replace(full, head=shape.embedding)]
            if not isinstance(shape.positions, Rotary):
                others.append(replace(full, positions=shape.embedding))
            sides = [difference_of(cell, by_shape[o], noise) for o in others if o in by_shape]
            found += [replace(side, kind="side") for side in sides]
    order = attrgetter("kind", "first.key.factorised", "first.architecture.width", "first.rank")
    return tuple(sorted(found, key=order))


def with_full(shape: Architecture, names: Iterable[str]) -> Architecture:
    """The same shape with these tables full."""
    return replace(shape, **dict.fromkeys(names, Full()))  # type: ignore[arg-type]  # tables


def _controls(cells: Iterable[CellResult]) -> dict[tuple[Architecture, Names], CellResult]:
    """Of each shape and set of factorised tables, the cell whose inner sizes limit nothing.

    It stands in where full tables were not trained; of several, that of the least inner size.
    """
    found: dict[tuple[Architecture, Names], CellResult] = {}
    for cell in sorted(cells, key=attrgetter("rank")):
        names = cell.key.factorised
        if names and cell.rank >= cell.architecture.width:
            found.setdefault((with_full(cell.architecture, names), names), cell)
    return found


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
        stds=value / noise.usual.std,
        is_settled=is_settled,
        seeds_needed=None if is_settled else needed,
    )


def differences(
    reference: CellResult,
    others: Mapping[str, CellResult],
    *,
    pooled: Iterable[CellResult],
    among: int,
) -> dict[str, CellDifference]:
    """Bits per byte of each of the others less the reference's, whatever they read.

    The intervals hold together at 90 %: Bonferroni over `among` comparisons, more than are made
    here if the reference was itself chosen for its loss. The noise is that of the cells `pooled`.
    """
    noise, tail, against = noise_among([*map(in_bits, pooled)]), TAIL / among, in_bits(reference)
    return {
        name: difference_of(in_bits(cell), against, noise, tail=tail, interval_tail=tail)
        for name, cell in others.items()
    }


def rankings(cells: Iterable[CellResult]) -> tuple[Ranking, ...]:
    """Every set of networks of equal size that differ in what they read."""
    order = sorted(cells, key=lambda cell: (cell.architecture.params, repr(cell)))
    groups = grouped(
        order, lambda c: (without_rate(c.recipe), c.architecture.context, c.architecture.objective)
    )
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
            found.append(Ranking(results=tuple(against), degrees=noise.usual.degrees))
    return tuple(sorted(found, key=lambda ranking: ranking.best.architecture.params))


def in_bits(cell: CellResult) -> CellResult:
    """The same with losses in bits per byte, whose ratio to nats is that of the data set."""
    ratio = cell.bits_per_byte / cell.mean if cell.mean else 0.0
    return replace(cell, losses=tuple(loss * ratio for loss in cell.losses))
