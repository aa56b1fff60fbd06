"""Networks of equal size that read different tokens: vocabularies, k-mers, patches, and depths.

Their losses compare in bits per byte of the source. The tokens of a patch are predicted at once,
so a patch starts with a handicap that more depth or a larger vocabulary does not have.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from archfit.fit.cells import Cell, without_rate
from archfit.fit.power import seeds_needed

TOLERANCE = 0.06  # of all parameters, by which sizes that were matched may differ
LEAST_DEGREES = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """One network, and how much worse it is than the best."""

    cell: Cell
    bits_per_byte: float
    difference: float  # from the best
    low: float
    high: float
    seeds: int
    seeds_needed: int | None  # to tell it from the best; None where it is told, or above 1000

    @property
    def is_settled(self) -> bool:
        """Whether it is worse than the best beyond doubt."""
        return self.low > 0


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
    found = [_compared(those) for those in matched if _is_question(those)]
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


def _is_question(cells: Sequence[Cell]) -> bool:
    inputs = {(cell.data_hash, cell.architecture.input) for cell in cells}
    return len(inputs) > 1 and sum(cell.seeds - 1 for cell in cells) >= LEAST_DEGREES


def _compared(cells: Sequence[Cell]) -> Comparison:
    from scipy.special import stdtrit

    degrees = sum(cell.seeds - 1 for cell in cells)
    squares = math.fsum(cell.squares * _bits_a_nat(cell) ** 2 for cell in cells)
    std, t90 = math.sqrt(squares / degrees), float(stdtrit(degrees, 0.95))
    ranked = sorted(cells, key=lambda cell: cell.bits_per_byte)
    return Comparison(
        params=ranked[0].architecture.params,
        standings=tuple(_standing(cell, ranked[0], std, t90) for cell in ranked),
        degrees=degrees,
    )


def _standing(cell: Cell, best: Cell, std: float, t90: float) -> Standing:
    difference = cell.bits_per_byte - best.bits_per_byte
    error = 0.0 if cell is best else std * math.sqrt(1 / cell.seeds + 1 / best.seeds)
    seeds = min(cell.seeds, best.seeds)
    settled = difference > t90 * error
    return Standing(
        cell=cell,
        bits_per_byte=cell.bits_per_byte,
        difference=difference,
        low=difference - t90 * error,
        high=difference + t90 * error,
        seeds=seeds,
        seeds_needed=None if settled or cell is best else seeds_needed(difference, error, seeds),
    )


def _bits_a_nat(cell: Cell) -> float:
    """Bits per byte for a nat per token: the same for all runs on a data set."""
    return cell.bits_per_byte / cell.mean
