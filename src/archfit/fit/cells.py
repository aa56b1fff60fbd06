"""Cells: runs that differ only in their seed, and which of them stand for a shape."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from archfit.spec import Architecture, Recipe, RunRecord, RunSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """The finished runs of one architecture, data set and recipe."""

    architecture: Architecture
    data_hash: str
    recipe: Recipe
    losses: tuple[float, ...]  # held-out nats per token after the last step, by seed
    bits_per_byte: float  # mean; comparable across vocabularies

    @property
    def seeds(self) -> int:
        """Runs."""
        return len(self.losses)

    @property
    def mean(self) -> float:
        """Held-out nats per token."""
        return math.fsum(self.losses) / self.seeds

    @property
    def squares(self) -> float:
        """Sum of squares about the mean, of seeds - 1 degrees of freedom."""
        return math.fsum((loss - self.mean) ** 2 for loss in self.losses)

    @property
    def size(self) -> int:
        """Block parameters, the papers' 12 L d^2."""
        return self.architecture.block_params

    @property
    def log_size(self) -> float:
        """Its natural logarithm."""
        return math.log(self.size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """A shape that was trained at several learning rates, and the one that stands for it."""

    depth: int
    width: int
    rates: tuple[float, ...]
    best: float


def without_rate(recipe: Recipe) -> Recipe:
    """The recipe as comparisons see it: the peak learning rate is tuned, not compared."""
    return replace(recipe, peak_learning_rate=0.0)


def cells_of(records: Iterable[RunRecord]) -> tuple[Cell, ...]:
    """The cells of all finished runs, in an order that does not depend on the records' order."""
    runs: dict[RunSpec, dict[int, RunRecord]] = defaultdict(dict)
    for record in records:
        if record.status == "finished":
            runs[replace(record.spec, seed=0)][record.spec.seed] = record
    by_name = sorted(runs.items(), key=lambda item: item[0].hash)
    return tuple(_cell(spec, [seeds[seed] for seed in sorted(seeds)]) for spec, seeds in by_name)


def tuned(cells: Iterable[Cell]) -> tuple[tuple[Cell, ...], tuple[Tuning, ...]]:
    """One cell for each shape, that of the best learning rate, and where there was a choice."""
    shapes: dict[object, list[Cell]] = defaultdict(list)
    for cell in cells:
        shapes[cell.architecture, cell.data_hash, without_rate(cell.recipe)].append(cell)
    best = tuple(min(choice, key=lambda cell: cell.mean) for choice in shapes.values())
    tunings = tuple(
        Tuning(
            depth=chosen.architecture.depth,
            width=chosen.architecture.width,
            rates=tuple(sorted(cell.recipe.peak_learning_rate for cell in choice)),
            best=chosen.recipe.peak_learning_rate,
        )
        for chosen, choice in zip(best, shapes.values(), strict=True)
        if len(choice) > 1
    )
    return best, tunings


def _cell(spec: RunSpec, records: list[RunRecord]) -> Cell:
    last = [record.evaluations[-1] for record in records]
    return Cell(
        architecture=spec.architecture,
        data_hash=spec.data_hash,
        recipe=spec.recipe,
        losses=tuple(evaluation.heldout_nats_per_token for evaluation in last),
        bits_per_byte=math.fsum(e.heldout_bits_per_byte for e in last) / len(last),
    )
