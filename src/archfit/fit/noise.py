"""How much losses differ between seeds, and how many seeds would settle a question.

Noise is pooled over cells, because two or three seeds say too little. Cells that are noisier than
accident allows are pooled apart: a rank of 2, which some seeds make use of and others do not, says
nothing about the noise of the full network beside it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from archfit.fit.cells import CellResult, grouped, without_rate
from archfit.spec import Recipe
from archfit.spec.estimate import CONFIDENCE

TAIL = (1 - CONFIDENCE) / 2  # of every interval, on each side
LEAST_DEGREES = 4  # with fewer, a 90 % interval is wider than what it is about
UNEVEN = 0.01  # below this probability the largest cell is no accident
MOST_SEEDS = 1000
POWER = 0.8  # of telling an effect that is there


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Cells whose runs have one standard deviation."""

    cells: tuple[CellResult, ...]

    @property
    def degrees(self) -> int:
        """Degrees of freedom: the sum of seeds - 1."""
        return sum(cell.seeds - 1 for cell in self.cells)

    @property
    def squares(self) -> float:
        """Sum of squares about the means of the cells."""
        return math.fsum(cell.squares for cell in self.cells)

    @property
    def std(self) -> float:
        """Standard deviation of one run."""
        return math.sqrt(self.squares / self.degrees) if self.degrees else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """The standard deviation over seeds of the runs of one data set, recipe and objective."""

    data_hash: str
    recipe: Recipe  # without its rate
    usual: Pool  # whose standard deviation is the noise
    noisy: Pool  # cells that are noisier than accident allows; empty as a rule

    @property
    def cells(self) -> tuple[CellResult, ...]:
        """All cells, those that are pooled apart last."""
        return (*self.usual.cells, *self.noisy.cells)

    @property
    def is_enough(self) -> bool:
        """Whether intervals can be had."""
        return self.usual.degrees >= LEAST_DEGREES and self.usual.std > 0

    def pool(self, cell: CellResult) -> Pool:
        """The one of the two pools that the cell is in."""
        return self.noisy if cell in self.noisy.cells else self.usual

    def variance(self, cell: CellResult) -> float:
        """Variance of the mean of the cell."""
        return self.pool(cell).std ** 2 / cell.seeds

    def error(self, *cells: CellResult) -> float:
        """The standard error of a sum or difference of the means of these cells."""
        return math.sqrt(math.fsum(self.variance(cell) for cell in cells))

    def t(self, *cells: CellResult, tail: float = TAIL) -> float:
        """Standard errors that such a difference exceeds with the probability `tail`.

        Where the cells are of both pools, with the degrees of freedom of Welch and Satterthwaite.
        """
        from scipy.special import stdtrit

        parts = [
            (math.fsum(self.variance(cell) for cell in cells if self.pool(cell) is pool), pool)
            for pool in (self.usual, self.noisy)
        ]
        squares = math.fsum(part**2 / pool.degrees for part, pool in parts if part)
        return float(stdtrit(math.fsum(part for part, _ in parts) ** 2 / squares, 1 - tail))


def noise_of(cells: Iterable[CellResult]) -> tuple[Noise, ...]:
    """The noise of each data set, recipe and objective."""
    groups = grouped(
        cells, lambda c: (c.data_hash, without_rate(c.recipe), c.architecture.objective)
    )
    return tuple(map(noise_among, groups.values()))


def noise_among(cells: Sequence[CellResult]) -> Noise:
    """The noise of these cells, which are of one recipe and objective."""
    usual, noisy = tuple(cells), []
    while (cell := _outlier(Pool(cells=usual))) is not None:
        noisy.append(cell)
        usual = tuple(other for other in usual if other is not cell)
    return Noise(
        data_hash=cells[0].data_hash,
        recipe=without_rate(cells[0].recipe),
        usual=Pool(cells=usual),
        noisy=Pool(cells=tuple(noisy)),
    )


def _outlier(pool: Pool) -> CellResult | None:
    """The noisiest cell, if that is no accident (Bonferroni, exact for each cell).

    Of equal variances, a cell's share of the sum of squares has a beta distribution.
    """
    from scipy.special import betainc

    repeated = [cell for cell in pool.cells if cell.seeds > 1]
    spare = min((pool.degrees - (cell.seeds - 1) for cell in repeated), default=0)
    if len(repeated) < 3 or spare < LEAST_DEGREES or pool.squares == 0:
        return None
    tails = {
        cell: 1 - float(betainc(own / 2, (pool.degrees - own) / 2, cell.squares / pool.squares))
        for cell in repeated
        for own in (cell.seeds - 1,)
    }
    noisiest = min(repeated, key=lambda cell: (tails[cell], -cell.squares))
    return noisiest if len(repeated) * tails[noisiest] < UNEVEN else None


def tail_of_best(candidates: int) -> float:
    """What a tail must be to say that one is worse than the best of so many.

    Of equal candidates one is best by luck and one worst: Bonferroni, over all pairs.
    """
    return 2 * TAIL / (candidates * (candidates - 1))


def seeds_needed(effect: float, error: float, seeds: int, *, tail: float = TAIL) -> int | None:
    """Seeds with which an effect of this size would be told from zero; None above MOST_SEEDS.

    `error` is the standard error with `seeds` seeds; it falls with their square root. `tail` is
    that of the interval which must leave out zero.
    """
    from scipy.special import ndtri

    enough = float(ndtri(1 - tail) + ndtri(POWER))  # standard errors
    if effect == 0 or (enough * error / effect) ** 2 * seeds > MOST_SEEDS:
        return None
    return max(2, math.ceil(seeds * (enough * error / effect) ** 2))
