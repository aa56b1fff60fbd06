"""Cells against cells, with intervals from seeds.

Contrasts: cells of one shape that differ in their tables, which say which rank hurts and on which
side, in nats per token. Rankings: networks of equal size that read different tokens (vocabularies,
k-mers, patches) compare in bits per byte of the source. The tokens of a patch are predicted at
once, so a patch starts with a handicap that more depth or a larger vocabulary does not have.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archfit.fit.cells import CellResult, FamilyKey, key_of, without_rate
from archfit.fit.noise import TAIL, Noise, noise_among, seeds_needed, tail_of_best
from archfit.spec import Architecture, Factorised, Full, Rotary
from archfit.spec.estimate import Estimate

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
    difference: CellDifference
    stds: float  # the difference in standard deviations of one run, as the papers say it

    @property
    def first(self) -> FamilyKey:
        """The family of the cell that is limited."""
        return key_of(self.difference.first)

    @property
    def second(self) -> FamilyKey:
        """The family of the cell that it is compared with."""
        return key_of(self.difference.second)

    @property
    def width(self) -> int:
        """The width that both have."""
        return self.difference.first.architecture.width

    @property
    def rank(self) -> int:
        """The least inner size of the factorised tables of the first."""
        return _inner(self.difference.first)

    @property
    def is_limit(self) -> bool:
        """Whether the rank is below the width; otherwise this is a control."""
        return self.rank < self.width


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
        if not names:
            continue
        full = with_full(shape, names)
        unlimited = by_shape.get(full, controls.get((full, names)))
        if unlimited is not None and unlimited is not cell:
            found.append(_contrast("cost", cell, unlimited, noise))
        if names == ("embedding",):  # the other tables with the rank that the embedding has
            others = [replace(full, head=shape.embedding)]
            if not isinstance(shape.positions, Rotary):
                others.append(replace(full, positions=shape.embedding))
            found += [
                _contrast("side", cell, by_shape[other], noise)
                for other in others
                if other in by_shape
            ]
    return tuple(sorted(found, key=lambda c: (c.kind, c.first.factorised, c.width, c.rank)))


def with_full(shape: Architecture, names: Iterable[str]) -> Architecture:
    """The same shape with these tables full."""
    full: dict[str, Full] = {name: Full() for name in names}
    return replace(shape, **full)  # type: ignore[arg-type]  # each is a table


def _controls(
    cells: Iterable[CellResult],
) -> dict[tuple[Architecture, tuple[str, ...]], CellResult]:
    """Of each shape and set of factorised tables, the cell whose inner sizes limit nothing.

    It stands in where full tables were not trained; of several, that of the least inner size.
    """
    found: dict[tuple[Architecture, tuple[str, ...]], CellResult] = {}
    for cell in sorted(cells, key=_inner):
        names = key_of(cell).factorised
        if names and _inner(cell) >= cell.architecture.width:
            found.setdefault((with_full(cell.architecture, names), names), cell)
    return found


def _inner(cell: CellResult) -> int:
    """The least inner size of its factorised tables; 0 where all are full."""
    tables = (getattr(cell.architecture, name) for name in key_of(cell).factorised)
    return min((table.inner for table in tables if isinstance(table, Factorised)), default=0)


def _contrast(
    kind: Literal["cost", "side"], first: CellResult, second: CellResult, noise: Noise
) -> Contrast:
    found = _difference(first, second, noise)
    return Contrast(kind=kind, difference=found, stds=(first.mean - second.mean) / noise.std)


def _difference(
    first: CellResult,
    second: CellResult,
    noise: Noise,
    *,
    per_byte: bool = False,  # so is the noise then
    tail: float = TAIL,  # that decides
    interval_tail: float = TAIL,
) -> CellDifference:
    both, value = (first, second), first.mean - second.mean
    if per_byte:
        both = in_bits(first), in_bits(second)
        value = first.bits_per_byte - second.bits_per_byte
    error = 0.0 if first is second else noise.error(*both)
    half = noise.t(*both, tail=interval_tail) * error
    is_settled = abs(value) > noise.t(*both, tail=tail) * error
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
    noise = noise_among([in_bits(cell) for cell in pooled])
    if not noise.is_enough:
        raise ValueError(
            f"{noise.degrees} degrees of freedom are too few for an interval; train more seeds"
        )
    tail = TAIL / among
    found = [
        _difference(other, reference, noise, per_byte=True, tail=tail, interval_tail=tail)
        for other in others
    ]
    return tuple(  # the seeds that there are did not settle it
        replace(item, seeds_needed=max(item.seeds_needed, item.seeds + 1))
        if item.seeds_needed
        else item
        for item in found
    )


def rankings(cells: Iterable[CellResult]) -> tuple[Ranking, ...]:
    """Every set of networks of equal size that differ in what they read."""
    groups: dict[object, list[CellResult]] = defaultdict(list)
    for cell in cells:
        shape = cell.architecture
        groups[without_rate(cell.recipe), shape.context, shape.objective].append(cell)
    found = []
    for matched in (matched for group in groups.values() for matched in _matched(group)):
        if len({(cell.data_hash, cell.architecture.input) for cell in matched}) > 1:
            noise = noise_among([in_bits(cell) for cell in matched])
            found += [_ranking(matched, noise)] if noise.is_enough else []
    return tuple(sorted(found, key=lambda ranking: ranking.best.architecture.params))


def _matched(cells: Sequence[CellResult]) -> Iterable[list[CellResult]]:
    """Runs of cells, by size, that are all within the tolerance of their smallest."""
    together: list[CellResult] = []
    for cell in sorted(cells, key=lambda cell: (cell.architecture.params, repr(cell))):
        params = cell.architecture.params
        if together and params > (1 + TOLERANCE) * together[0].architecture.params:
            yield together
            together = []
        together.append(cell)
    yield together


def _ranking(cells: Sequence[CellResult], noise: Noise) -> Ranking:
    """Worse than the best is what is so although that is the best of several by luck, too."""
    ranked, tail = sorted(cells, key=lambda cell: cell.bits_per_byte), tail_of_best(len(cells))
    results = [_difference(cell, ranked[0], noise, per_byte=True, tail=tail) for cell in ranked]
    return Ranking(results=tuple(results), degrees=noise.degrees)


def in_bits(cell: CellResult) -> CellResult:
    """The same with losses in bits per byte, whose ratio to nats is that of the data set."""
    ratio = cell.bits_per_byte / cell.mean if cell.mean else 0.0
    return replace(cell, losses=tuple(loss * ratio for loss in cell.losses))
