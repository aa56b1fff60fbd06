"""All that a set of records says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from archfit.fit.best_depth import BestDepth, best_depths
from archfit.fit.cells import Cell, Tuning, cells_of, tuned
from archfit.fit.comparison import Comparison, comparisons
from archfit.fit.contrasts import Contrast, contrasts
from archfit.fit.crossing import Crossing, CrossingDraws, crossings_of, draws_of, pairs
from archfit.fit.curves import LEAST_SIZES, Curve, curve_of
from archfit.fit.families import Family, families_of, key_of
from archfit.fit.laws import Law
from archfit.fit.noise import LEAST_DEGREES, Noise, noise_of
from archfit.fit.redundancy import Redundancy, redundancies
from archfit.fit.size_law import size_law
from archfit.fit.transition_law import transition_laws
from archfit.spec import RunRecord

SEED = 0
REPEATS = 5  # seeds of a cell from which its own standard deviation is an answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Fits:
    """What was found, by kind of question."""

    curves: tuple[Curve, ...] = field(compare=False)  # arrays; what was found from them compares
    crossings: tuple[Crossing, ...]
    redundancy: tuple[Redundancy, ...]
    laws: tuple[Law, ...]
    contrasts: tuple[Contrast, ...]
    best_depth: tuple[BestDepth, ...]
    comparisons: tuple[Comparison, ...]  # across vocabularies, in bits per byte
    noise: tuple[Noise, ...]
    tunings: tuple[Tuning, ...]
    runs: int  # finished
    diverged: int

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All that finished, one for each shape."""
        return tuple(cell for noise in self.noise for cell in noise.cells)

    @property
    def repeated(self) -> tuple[Cell, ...]:
        """Cells of many seeds: how much do these alone change the loss?"""
        cells = (cell for noise in self.noise if noise.is_enough for cell in noise.cells)
        return tuple(cell for cell in cells if cell.seeds >= REPEATS)

    @property
    def is_empty(self) -> bool:
        """Whether no question at all is answered."""
        parts = self.crossings, self.redundancy, self.laws, self.contrasts, self.best_depth
        return not any((*parts, self.comparisons, self.repeated))


def fitted(records: Iterable[RunRecord], *, seed: int = SEED) -> Fits:
    """The conclusions of these records, whatever their order; `seed` is that of resampling.

    Losses are compared only among runs of one data set and recipe.
    """
    every = tuple(records)
    cells = cells_of(every)
    best, tunings = tuned(cells)
    noises = noise_of(best)  # a rate that is too high is noisier
    parts = [_of_group(best, noise, seed) for noise in noises if noise.is_enough]
    fits = Fits(
        curves=tuple(item for part in parts for item in part.curves),
        crossings=tuple(item for part in parts for item in part.crossings),
        redundancy=tuple(item for part in parts for item in part.redundancy),
        laws=tuple(item for part in parts for item in part.laws),
        contrasts=tuple(item for part in parts for item in part.contrasts),
        best_depth=tuple(item for part in parts for item in part.best_depth),
        comparisons=comparisons(best),
        noise=noises,
        tunings=tunings,
        runs=sum(cell.seeds for cell in cells),
        diverged=sum(record.status == "diverged" for record in every),
    )
    _check_enough(fits, families_of(best))
    return fits


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """What the runs of one data set and recipe say."""

    curves: tuple[Curve, ...]
    crossings: tuple[Crossing, ...]
    redundancy: tuple[Redundancy, ...]
    laws: tuple[Law, ...]
    contrasts: tuple[Contrast, ...]
    best_depth: tuple[BestDepth, ...]


def _of_group(cells: Sequence[Cell], noise: Noise, seed: int) -> _Part:
    own = [cell for cell in cells if key_of(cell).group == (noise.data_hash, noise.recipe)]
    families = families_of(own)
    curves = [curve_of(family, noise, seed) for family in families if family.sizes >= LEAST_SIZES]
    found, draws = _crossings(curves)
    sizes = [law for curve in curves if (law := size_law(curve, noise)) is not None]
    return _Part(
        curves=tuple(curves),
        crossings=tuple(found),
        redundancy=redundancies(families, curves, noise, seed),
        laws=(*transition_laws(draws), *sizes),
        contrasts=contrasts(own, noise),
        best_depth=best_depths(families, curves, noise),
    )


def _crossings(curves: Sequence[Curve]) -> tuple[list[Crossing], list[CrossingDraws]]:
    found: list[Crossing] = []
    draws: list[CrossingDraws] = []
    for shallow, deep, neighbours in pairs(curves):
        crossings = crossings_of(shallow, deep, neighbours=neighbours)
        found += crossings
        draws += [draws_of(one, shallow, deep) for one in crossings if one.is_crossing]
    return found, draws


def _check_enough(fits: Fits, families: Sequence[Family]) -> None:
    """Refuse records that answer nothing, and say what is missing."""
    if not fits.noise:
        raise ValueError(
            f"none of {fits.diverged} runs finished, so there is no loss to fit; lower the peak "
            "learning rate and train them again"
        )
    if fits.is_empty and not any(noise.is_enough for noise in fits.noise):
        most = max(noise.degrees for noise in fits.noise)
        if most >= LEAST_DEGREES:
            raise ValueError(
                f"{most} runs repeat others and have the very same losses, so there is no noise to "
                "make intervals of; train seeds that differ"
            )
        raise ValueError(
            f"{fits.runs} runs repeat cells {most} times (runs of one data set and recipe less "
            f"their cells), and intervals need {LEAST_DEGREES} repeats; train 2 or 3 seeds of each "
            "cell"
        )
    if fits.is_empty:
        sizes = max(family.sizes for family in families)
        raise ValueError(
            f"the largest family (networks that differ only in width) has {sizes} sizes and there "
            f"is nothing to compare it with; a curve needs {LEAST_SIZES}, a size law 4, a crossing "
            "two depths with curves over the same sizes, a contrast a cell with full tables, a "
            f"spread {REPEATS} seeds"
        )
