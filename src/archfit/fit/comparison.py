"""Networks of equal size that read different tokens: vocabularies, k-mers, patches, and depths.

Their losses compare in bits per byte of the source. The tokens of a patch are predicted at once,
so a patch starts with a handicap that more depth or a larger vocabulary does not have.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from archfit.fit.cells import Cell, without_rate
from archfit.fit.noise import Noise, noise_among
from archfit.fit.power import seeds_needed
from archfit.fit.resample import tail_of_best

TOLERANCE = 0.06  # of all parameters, by which sizes that were matched may differ


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """One network, and how much worse it is than the best."""

    cell: Cell
    bits_per_byte: float
    difference: float  # from the best
    low: float
    high: float
    is_settled: bool  # worse than the best, even though that is the best of several by luck too
    seeds: int
    seeds_needed: int | None  # to tell it from the best; None where it is told, or above 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Networks of about as many parameters, the best first."""

    params: int  # of the best
    standings: tuple[Standing, ...]
    degrees: int


def comparisons(cells: Iterable[Cell]) -> tuple[Comparison, ...]:
    """Every set of networks of equal size that differ in what they read."""
    groups: dict[object, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[without_rate(cell.recipe), cell.architecture.context].append(cell)
    matched = [those for group in groups.values() for those in _matched(group)]
    found = [_compared(those, noise) for those in matched if (noise := _noise(those)) is not None]
    return tuple(sorted(found, key=lambda one: one.params))


def _matched(cells: Sequence[Cell]) -> Iterable[list[Cell]]:
    """Runs of cells, by size, that are all within the tolerance of their smallest."""
    together: list[Cell] = []
    for cell in sorted(cells, key=lambda cell: (cell.architecture.params, repr(cell))):
        if (
            together
            and cell.architecture.params > (1 + TOLERANCE) * together[0].architecture.params
        ):
            yield together
            together = []
        together.append(cell)
    yield together


def _noise(cells: Sequence[Cell]) -> Noise | None:
    """Of their bits per byte; None where they read the same, or seeds are too few."""
    if len({(cell.data_hash, cell.architecture.input) for cell in cells}) < 2:
        return None
    noise = noise_among([in_bits(cell) for cell in cells])
    return noise if noise.is_enough else None


def _compared(cells: Sequence[Cell], noise: Noise) -> Comparison:
    ranked = sorted(cells, key=lambda cell: cell.bits_per_byte)
    best, tail = ranked[0], tail_of_best(len(cells))
    return Comparison(
        params=best.architecture.params,
        standings=tuple(_standing(cell, best, noise, tail) for cell in ranked),
        degrees=noise.degrees,
    )


def _standing(cell: Cell, best: Cell, noise: Noise, tail: float) -> Standing:
    difference, both = cell.bits_per_byte - best.bits_per_byte, (in_bits(cell), in_bits(best))
    error = 0.0 if cell is best else noise.error(*both)
    half = noise.t90(*both) * error
    seeds = min(cell.seeds, best.seeds)
    is_settled = difference > noise.t(tail, *both) * error
    needed = seeds_needed(difference, error, seeds, tail=tail)
    return Standing(
        cell=cell,
        bits_per_byte=cell.bits_per_byte,
        difference=difference,
        low=difference - half,
        high=difference + half,
        is_settled=is_settled,
        seeds=seeds,
        seeds_needed=None if is_settled else needed,  # none of the best either: no difference
    )


def in_bits(cell: Cell) -> Cell:
    """The same with losses in bits per byte, whose ratio to nats is that of the data set."""
    ratio = cell.bits_per_byte / cell.mean if cell.mean else 0.0
    return replace(cell, losses=tuple(loss * ratio for loss in cell.losses))
