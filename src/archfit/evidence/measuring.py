"""Numbers of a fit as measures, and differences between any two cells of it."""

from typing import TypeAlias

from archfit.evidence.finding import Measure
from archfit.fit.best_depth import BestDepth
from archfit.fit.cells import Cell
from archfit.fit.crossing import Crossing
from archfit.fit.fitted import Fits
from archfit.fit.noise import Noise
from archfit.fit.redundancy import Redundancy
from archfit.spec import Architecture, Factorised, Head

BYTES, BPE = 257, 2000  # vocabularies of the English text
NEAR = 1.5  # "about" a number: within this factor
PAIR = (2, 8)  # depths that several sweeps compare
InnerSizes: TypeAlias = tuple[int | None, int | None, int | None]


def share_of(item: Redundancy, what: str, *, series: str = "") -> Measure:
    """A redundancy."""
    return Measure(
        what=what,
        at=item.ratio,
        value=item.value,
        low=item.low,
        high=item.high,
        unit="share",
        seeds=item.seeds,
        series=series,
    )


def width_of(item: Crossing, what: str) -> Measure:
    """The shallow width at a crossing; without one nothing is known of it but the range."""
    return Measure(
        what=what,
        at=None,
        value=item.width,
        low=item.width_low,
        high=item.width_high,
        unit="width",
        seeds=item.seeds,
    )


def size_of(item: Crossing, what: str) -> Measure:
    """The size at a crossing; beyond the range it is a limit."""
    low, high = item.low, item.high
    if not item.is_crossing and item.beyond is not None:
        low, high = (None, item.range[0]) if item.beyond == "below" else (item.range[1], None)
    return Measure(
        what=what,
        at=None,
        value=item.size,
        low=low,
        high=high,
        unit="block parameters",
        seeds=item.seeds,
    )


def by_inner_sizes(fits: Fits, *, width: int) -> dict[InnerSizes, Cell]:
    """The cells of this width by the inner sizes of embedding, positions and head."""
    return {
        _inner_sizes(cell.architecture): cell
        for cell in fits.cells
        if cell.architecture.width == width
    }


def _inner_sizes(shape: Architecture) -> InnerSizes:
    """None is a full table."""
    return inner_size(shape.embedding), inner_size(shape.positions), inner_size(shape.head)


def inner_size(table: Head) -> int | None:
    """None where it is no product."""
    return table.inner if isinstance(table, Factorised) else None


def pair_of(fits: Fits, *, vocab: int, cap: int | None) -> Crossing:
    """The comparison of 2 and 8 layers for this vocabulary, the embedding's rank capped or not."""
    (found,) = (
        one
        for one in fits.crossings
        if (one.shallow.depth, one.deep.depth) == PAIR
        and one.shallow.input.vocab == vocab
        and inner_size(one.shallow.embedding) == cap
    )
    return found


def pooled_std(fits: Fits, *cells: Cell) -> float:
    """Of one run, that of the noisiest of these cells."""
    return max(_noise(fits, cell).pool(cell).std for cell in cells)


def _noise(fits: Fits, cell: Cell) -> Noise:
    return next(noise for noise in fits.noise if cell in noise.cells)


def loss_difference(
    fits: Fits, first: Cell, second: Cell, what: str, *, at: float | None = None
) -> Measure:
    """The loss of `first` less that of `second`, which are of one data set and recipe."""
    return noisy_difference(_noise(fits, first), first, second, what, at=at)


def noisy_difference(
    noise: Noise, first: Cell, second: Cell, what: str, *, at: float | None
) -> Measure:
    """The same, where the noise is known and there is no fit."""
    half = noise.t90(first, second) * noise.error(first, second)
    found = first.mean - second.mean
    return Measure(
        what=what,
        at=at,
        value=found,
        low=found - half,
        high=found + half,
        unit="nats",
        seeds=min(first.seeds, second.seeds),
    )


def depth_at(item: BestDepth, what: str) -> Measure:
    """The best depth at one size; the ends are depths that cannot be told from it."""
    return Measure(
        what=what,
        at=item.size,
        value=item.depth,
        low=item.low,
        high=item.high,
        unit="layers",
        seeds=item.seeds,
    )
