"""Cells of one shape that differ in their tables: which rank hurts, and on which side."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from archfit.fit.cells import Cell
from archfit.fit.families import FamilyKey, key_of
from archfit.fit.noise import Noise
from archfit.fit.power import seeds_needed
from archfit.spec import Architecture, Factorised, Full

SIDES = (("embedding", "head"), ("embedding", "positions"))  # pairs whose ranks are compared


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """The loss of `first` less that of `second`, nats per token."""

    kind: Literal["cost", "side"]  # against tables without limit; or another table that has it
    first: FamilyKey
    second: FamilyKey
    width: int
    rank: int  # the least inner size of the factorised tables of `first`
    difference: float
    low: float
    high: float
    stds: float  # the difference in standard deviations of one run, as the papers say it
    seeds: int  # the fewer
    seeds_needed: int | None  # to settle it; None where it is settled, or above 1000

    @property
    def is_limit(self) -> bool:
        """Whether the rank is below the width; otherwise this is a control."""
        return self.rank < self.width

    @property
    def is_settled(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def contrasts(cells: Iterable[Cell], noise: Noise) -> tuple[Contrast, ...]:
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
        found += [
            _contrast("side", cell, by_shape[other], noise)
            for other in _other_sides(shape, names)
            if other in by_shape
        ]
    order = {"cost": 0, "side": 1}
    return tuple(sorted(found, key=lambda c: (order[c.kind], c.first.factorised, c.width, c.rank)))


def with_full(shape: Architecture, names: Iterable[str]) -> Architecture:
    """The same shape with these tables full."""
    full: dict[str, Full] = {name: Full() for name in names}
    return replace(shape, **full)  # type: ignore[arg-type]  # each is a table


def _controls(cells: Iterable[Cell]) -> dict[tuple[Architecture, tuple[str, ...]], Cell]:
    """Of each shape and set of factorised tables, the cell whose inner sizes limit nothing.

    It stands in where full tables were not trained; of several, that of the least inner size.
    """
    found: dict[tuple[Architecture, tuple[str, ...]], Cell] = {}
    for cell in sorted(cells, key=_inner):
        names = key_of(cell).factorised
        if names and _inner(cell) >= cell.architecture.width:
            found.setdefault((with_full(cell.architecture, names), names), cell)
    return found


def _inner(cell: Cell) -> int:
    """The least inner size of its factorised tables; 0 where all are full."""
    tables = (getattr(cell.architecture, name) for name in key_of(cell).factorised)
    return min((table.inner for table in tables if isinstance(table, Factorised)), default=0)


def _other_sides(shape: Architecture, names: tuple[str, ...]) -> list[Architecture]:
    """The shape whose other table has the rank that this one's embedding has."""
    if names != ("embedding",):
        return []
    full = with_full(shape, names)
    return [replace(full, **{other: shape.embedding}) for _, other in SIDES]  # type: ignore[arg-type]


def _contrast(kind: Literal["cost", "side"], first: Cell, second: Cell, noise: Noise) -> Contrast:
    difference = first.mean - second.mean
    error = noise.error(first, second)
    half = noise.t90(first, second) * error
    seeds = min(first.seeds, second.seeds)
    is_settled = abs(difference) > half
    return Contrast(
        kind=kind,
        first=key_of(first),
        second=key_of(second),
        width=first.architecture.width,
        rank=_inner(first),
        difference=difference,
        low=difference - half,
        high=difference + half,
        stds=difference / noise.std,
        seeds=seeds,
        seeds_needed=None if is_settled else seeds_needed(difference, error, seeds),
    )
