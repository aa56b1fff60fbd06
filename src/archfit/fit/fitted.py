"""Records from folders of runs, and all that they say."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archfit.fit.bottlenecks import MeasuredRedundancy, redundancies
from archfit.fit.cells import CellResult, Tuning, WidthFamily, cells_of, families_of, tuned
from archfit.fit.comparisons import CellDifference, Ranking, contrasts, rankings
from archfit.fit.curves import LEAST_SIZES, Curve, curve_of
from archfit.fit.depths import BestDepth, Crossing, best_depths, crossings
from archfit.fit.laws import LEAST_POINTS, Law, size_law, transition_laws
from archfit.fit.noise import LEAST_DEGREES, Noise, noise_of
from archfit.spec import RunRecord
from archfit.spec.errors import refusal, refuse_if
from archfit.spec.files import SWEEP, read_records
from archfit.sweep.folder import read_sweep

GROUPED = ("curves", "crossings", "redundancy", "laws", "contrasts", "best_depth")
REPEATS = 5  # seeds of a cell from which its own standard deviation is an answer


def read_folders(paths: Sequence[Path]) -> tuple[tuple[RunRecord, ...], bool]:
    """The records of all folders, each run once, and whether their data sets are known to be one
    source in several vocabularies; a sentence says why they cannot be fitted.

    Data sets that a sweep names together are of one source. Where there is no sweep to say so,
    the runs on each are fitted on their own.
    """
    folders = {}
    for path in paths:
        refuse_if(not path.is_dir(), "fit-no-folder", path=path)
        folders[path] = read_records(path)
        refuse_if(not folders[path], "fit-no-runs", path=path)
    named = {path: _named_data(path) for path in paths}
    data = {
        path: named[path] or frozenset(record.spec.data_hash for record in records)
        for path, records in folders.items()
    }
    found: dict[str, tuple[Path, RunRecord]] = {}
    for folder, record in ((path, record) for path, own in folders.items() for record in own):
        name = record.spec.data_hash
        for other, hashes in data.items():
            words = {"name": name[:16], "other": other, "others": min(hashes)[:16]}
            refuse_if(name not in hashes, "fit-other-data", folder=folder, **words)
        path, known = found.setdefault(record.spec.hash, (folder, record))
        is_same = known.same_result(record)
        refuse_if(not is_same, "fit-two-results", name=record.spec.name, path=path, folder=folder)
    is_one_source = all(named[path] or len(data[path]) == 1 for path in paths)
    return tuple(found[name][1] for name in sorted(found)), is_one_source


def _named_data(folder: Path) -> frozenset[str]:
    """The data sets that the folder's sweep names; none where there is no sweep."""
    path = folder / SWEEP
    return frozenset(data.hash for data in read_sweep(path).data) if path.exists() else frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Fits:
    """What was found, by kind of question."""

    curves: tuple[Curve, ...] = field(compare=False)  # arrays; what was found from them compares
    crossings: tuple[Crossing, ...]
    redundancy: tuple[MeasuredRedundancy, ...]
    laws: tuple[Law, ...]
    contrasts: tuple[CellDifference, ...]
    best_depth: tuple[BestDepth, ...]
    rankings: tuple[Ranking, ...] = ()  # across vocabularies, in bits per byte
    noise: tuple[Noise, ...]
    tunings: tuple[Tuning, ...] = ()
    runs: int = 0  # finished
    diverged: int = 0
    is_one_source: bool = True  # losses on several data sets were compared, in bits per byte
    numerics: tuple[int, ...] = ()  # versions of the arithmetic that trained them

    @property
    def cells(self) -> tuple[CellResult, ...]:
        """All that finished, one for each shape."""
        return tuple(cell for noise in self.noise for cell in noise.cells)

    def noise_about(self, cell: CellResult) -> Noise:
        """The noise of the data set and recipe of a cell."""
        return next(noise for noise in self.noise if cell in noise.cells)

    @property
    def data_hashes(self) -> tuple[str, ...]:
        """The data sets that runs were trained on, each once."""
        return tuple(dict.fromkeys(noise.data_hash for noise in self.noise))

    @property
    def repeated(self) -> tuple[CellResult, ...]:
        """Cells of many seeds: how much do these alone change the loss?"""
        cells = (cell for noise in self.noise if noise.is_enough for cell in noise.cells)
        return tuple(cell for cell in cells if cell.seeds >= REPEATS)

    @property
    def is_empty(self) -> bool:
        """Whether no question at all is answered."""
        parts = self.crossings, self.redundancy, self.laws, self.contrasts, self.best_depth
        return not any((*parts, self.rankings, self.repeated))


def fitted(records: Iterable[RunRecord], is_one_source: bool = True) -> Fits:
    """The conclusions of these records, whatever their order.

    Losses are compared only among runs of one data set, recipe and objective; those of several
    data sets compare in bits per byte if they are one source.
    """
    every = tuple(records)
    cells = cells_of(every)
    best, tunings = tuned(cells)
    noises = noise_of(best)  # a rate that is too high is noisier
    sources = [best] if is_one_source else [noise.cells for noise in noises]
    groups = [_of_group(noise) for noise in noises if noise.is_enough]
    fits = Fits(
        **{name: tuple(item for group in groups for item in group[name]) for name in GROUPED},
        rankings=tuple(item for source in sources for item in rankings(source)),
        noise=noises,
        tunings=tunings,
        runs=sum(cell.seeds for cell in cells),
        diverged=sum(record.status == "diverged" for record in every),
        numerics=tuple(sorted({record.machine.numerics for record in every})),
        is_one_source=is_one_source,
    )
    _check_enough(fits, families_of(best))
    return fits


def _of_group(noise: Noise) -> dict[str, Sequence[Any]]:
    """What the runs of one data set, recipe and objective say."""
    families = families_of(noise.cells)
    curves = [curve_of(family, noise) for family in families if family.sizes >= LEAST_SIZES]
    found = crossings(curves)
    sizes = [law for curve in curves if (law := size_law(curve, noise)) is not None]
    return {
        "curves": curves,
        "crossings": found,
        "redundancy": redundancies(families, curves, noise),
        "laws": (*transition_laws(found), *sizes),
        "contrasts": contrasts(noise.cells, noise),
        "best_depth": best_depths(families, curves, noise),
    }


def _check_enough(fits: Fits, families: Sequence[WidthFamily]) -> None:
    """Refuse records that answer nothing, and say what is missing."""
    refuse_if(not fits.noise, "fit-none-finished", runs=fits.diverged)
    if fits.is_empty and not any(noise.is_enough for noise in fits.noise):
        most = max(noise.usual.degrees for noise in fits.noise)
        refuse_if(most >= LEAST_DEGREES, "fit-equal-losses", most=most)
        raise refusal("fit-few-seeds", least=LEAST_DEGREES, most=most, runs=fits.runs)
    if fits.is_empty:
        sizes = max(family.sizes for family in families)
        least = {"curve": LEAST_SIZES, "law": LEAST_POINTS, "spread": REPEATS}
        raise refusal("fit-few-sizes", sizes=sizes, **least)
