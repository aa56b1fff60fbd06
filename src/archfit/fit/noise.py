"""How much losses differ between seeds: pooled over cells, because two or three say too little."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from archfit.fit.cells import Cell, without_rate
from archfit.spec import Recipe

LEAST_DEGREES = 4  # with fewer, a 90 % interval is wider than what it is about
UNEVEN = 0.01  # below this probability the largest cell is no accident


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """The standard deviation over seeds of the runs of one data set and recipe."""

    data_hash: str
    recipe: Recipe  # without its rate
    std: float  # of one run
    degrees: int  # sum of seeds - 1
    cells: tuple[Cell, ...]
    largest_ratio: float  # of a cell's standard deviation to the pooled one
    largest_probability: float  # that some cell's would be so large by accident

    @property
    def is_enough(self) -> bool:
        """Whether intervals can be had."""
        return self.degrees >= LEAST_DEGREES and self.std > 0

    @property
    def is_uneven(self) -> bool:
        """Whether one cell is noisier than accident allows."""
        return self.largest_probability < UNEVEN

    def error(self, *cells: Cell) -> float:
        """The standard error of a sum or difference of the means of these cells."""
        return self.std * math.sqrt(math.fsum(1 / cell.seeds for cell in cells))

    @property
    def t90(self) -> float:
        """Standard errors on each side of a 90 % interval."""
        from scipy.special import stdtrit

        return float(stdtrit(self.degrees, 0.95))


def noise_of(cells: Iterable[Cell]) -> tuple[Noise, ...]:
    """The noise of each data set and recipe."""
    groups: dict[tuple[str, Recipe], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.data_hash, without_rate(cell.recipe)].append(cell)
    return tuple(_pooled(*group, tuple(cells)) for group, cells in groups.items())


def _pooled(data_hash: str, recipe: Recipe, cells: tuple[Cell, ...]) -> Noise:
    degrees = sum(cell.seeds - 1 for cell in cells)
    squares = math.fsum(cell.squares for cell in cells)
    ratio, probability = _largest(cells, squares, degrees)
    return Noise(
        data_hash=data_hash,
        recipe=recipe,
        std=math.sqrt(squares / degrees) if degrees else 0.0,
        degrees=degrees,
        cells=cells,
        largest_ratio=ratio,
        largest_probability=probability,
    )


def _largest(cells: tuple[Cell, ...], squares: float, degrees: int) -> tuple[float, float]:
    """The noisiest cell against all, and its probability (Bonferroni, exact for each cell).

    Of equal variances, a cell's share of the sum of squares has a beta distribution.
    """
    from scipy.special import betainc

    repeated = [cell for cell in cells if cell.seeds > 1]
    if len(repeated) < 2 or squares == 0:
        return 1.0, 1.0
    variances = [cell.squares / (cell.seeds - 1) for cell in repeated]
    ratio = math.sqrt(max(variances) / (squares / degrees))
    tails = []
    for cell in repeated:
        own = cell.seeds - 1
        tails.append(1 - float(betainc(own / 2, (degrees - own) / 2, cell.squares / squares)))
    return ratio, min(1.0, len(repeated) * min(tails))
