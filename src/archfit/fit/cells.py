"""Cells (runs that differ only in their seed) and families (cells that differ only in width)."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TypeVar

from archfit.spec import Architecture, Factorised, Full, Recipe, RunRecord, parts
from archfit.spec.architecture import BlockFamily, Objective, gated_units

Item = TypeVar("Item")
Key = TypeVar("Key")

RATIO_STEP = math.log(2) / 14  # 5 %: widths that heads do not divide miss their ratio by a little
TABLES = ("embedding", "positions", "head")
GATED_RATIO = 2.667  # units of a gated layer over the width, whatever they were rounded to


class Repeated:
    """What was trained with several seeds."""

    __slots__ = ()
    losses: tuple[float, ...]  # held out, after the last step, by seed

    @property
    def seeds(self) -> int:
        """How many runs it has."""
        return len(self.losses)

    @property
    def mean(self) -> float:
        """The mean loss over seeds."""
        return fmean(self.losses)

    @property
    def squares(self) -> float:
        """Sum of squares about the mean, of seeds - 1 degrees of freedom."""
        return math.fsum((loss - self.mean) ** 2 for loss in self.losses)


@dataclass(frozen=True, kw_only=True, slots=True)
class CellResult(Repeated):
    """The finished runs of one architecture, data set and recipe."""

    architecture: Architecture
    data_hash: str
    recipe: Recipe
    losses: tuple[float, ...]  # nats per token
    bits_per_byte: float  # mean; comparable across vocabularies

    @property
    def std(self) -> float | None:
        """The standard deviation of one run, by this cell's seeds alone; None of a single one."""
        return (self.squares / (self.seeds - 1)) ** 0.5 if self.seeds > 1 else None

    @property
    def size(self) -> int:
        """Block parameters, the papers' 12 L d^2."""
        return self.architecture.block_params

    @property
    def log_size(self) -> float:
        """The natural logarithm of the block parameters."""
        return math.log(self.size)

    @property
    def key(self) -> "FamilyKey":
        """The family that it belongs to."""
        shape = self.architecture
        same = ("depth", "attention", "context", "input", *TABLES, "block", "qk_norm", "objective")
        return FamilyKey(
            data_hash=self.data_hash,
            recipe=without_rate(self.recipe),
            attention_step=round(math.log(shape.attention_ratio) / RATIO_STEP),
            feed_forward_multiple=multiple_of(shape),
            heads_a_key=shape.heads // shape.key_value_heads,
            **{name: getattr(shape, name) for name in same},
        )

    @property
    def rank(self) -> int:
        """The least inner size of its factorised tables; 0 where all are full."""
        tables = (getattr(self.architecture, name) for name in TABLES)
        return min((each.inner for each in tables if isinstance(each, Factorised)), default=0)

    @property
    def text(self) -> str:
        """What seeds the resamples of this cell: the text that 0.1 had for it, so that they stay
        what they were."""
        shape = self.architecture
        facts = {name: getattr(shape, name) for name in ("depth", "width", "heads", "head_dim")}
        facts |= {"attention": shape.attention, "feed_forward_multiple": multiple_of(shape)}
        facts |= {name: getattr(shape, name) for name in ("context", "input", *TABLES)}
        words = ", ".join(f"{name}={fact!r}" for name, fact in facts.items())
        return f"(Architecture({words}), {self.data_hash!r}, {self.recipe!r})"


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


def cells_of(records: Iterable[RunRecord]) -> tuple[CellResult, ...]:
    """The cells of all finished runs, in an order that does not depend on the records' order."""
    finished = {record.spec: record for record in records if record.status == "finished"}
    runs = grouped(finished.values(), lambda record: replace(record.spec, seed=0))
    found = []
    for spec, own in sorted(runs.items(), key=lambda item: item[0].hash):
        last = [run.evaluations[-1] for run in sorted(own, key=lambda run: run.spec.seed)]
        found.append(
            CellResult(
                architecture=spec.architecture,
                data_hash=spec.data_hash,
                recipe=spec.recipe,
                losses=tuple(evaluation.heldout_nats_per_token for evaluation in last),
                bits_per_byte=fmean(evaluation.heldout_bits_per_byte for evaluation in last),
            )
        )
    return tuple(found)


def tuned(cells: Iterable[CellResult]) -> tuple[tuple[CellResult, ...], tuple[Tuning, ...]]:
    """One cell for each shape, that of the best learning rate, and where there was a choice."""
    shapes = grouped(cells, lambda c: (c.architecture, c.data_hash, without_rate(c.recipe)))
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


@dataclass(frozen=True, kw_only=True, slots=True)
class FamilyKey:
    """Everything that the cells of a family share; its text seeds the family's resamples."""

    data_hash: str
    recipe: Recipe  # without its rate
    depth: int
    attention: parts.Attention
    attention_step: int  # ln (H d_a / d_x) in steps of 5 %; 0 is the usual ratio of 1
    feed_forward_multiple: float  # whole, or to 5 %; see `multiple_of`
    context: int
    input: parts.Input
    embedding: parts.Table
    positions: parts.Positions
    head: parts.Head
    # Not in the text: 0.1 had none of them.
    block: BlockFamily = field(repr=False)
    heads_a_key: int = field(repr=False)  # that share keys and values
    qk_norm: bool = field(repr=False)
    objective: Objective = field(repr=False)

    @property
    def any_depth(self) -> "FamilyKey":
        """What families of several depths share when nothing but depth sets them apart."""
        return replace(self, depth=1)

    @property
    def factorised(self) -> tuple[str, ...]:
        """Names of the tables that are products of two."""
        return tuple(name for name in TABLES if isinstance(getattr(self, name), Factorised))

    @property
    def with_full_tables(self) -> "FamilyKey":
        """The family that no factorised table limits."""
        return replace(self, **dict.fromkeys(self.factorised, Full()))  # type: ignore[arg-type]

    @property
    def tables(self) -> dict[str, object]:
        """The inner size of each table, or how else it is made."""
        made = ((name, getattr(self, name)) for name in TABLES)
        return {name: getattr(of, "inner", type(of).__name__.lower()) for name, of in made}

    @property
    def words(self) -> str:
        """What sets it apart from the plain network, for sentences; empty for that one."""
        ratio = math.exp(self.attention_step * RATIO_STEP)
        words = {f"{name} rank {getattr(self, name).inner}": True for name in self.factorised} | {
            f"attention ratio {ratio:.2g}": self.attention_step != 0,
            f"{self.block} blocks": self.block != "gpt2",
            f"keys shared by {self.heads_a_key} heads": self.heads_a_key > 1,
            "norms of queries and keys": self.qk_norm,
            "masked tokens": self.objective == "masked",
        }
        return ", ".join(word for word, is_said in words.items() if is_said)


@dataclass(frozen=True, kw_only=True, slots=True)
class WidthFamily:
    """Cells of one key, smallest first: their loss is a curve over size."""

    key: FamilyKey
    cells: tuple[CellResult, ...]

    @property
    def sizes(self) -> int:
        """How many different sizes it has."""
        return len({cell.size for cell in self.cells})

    @property
    def seeds(self) -> int:
        """The fewest seeds of any cell."""
        return min(cell.seeds for cell in self.cells)

    @property
    def log_range(self) -> tuple[float, float]:
        """ln N of the smallest and the largest."""
        return self.cells[0].log_size, self.cells[-1].log_size

    def width_at(self, log_size: float) -> float:
        """The width of a member of this size: N = c d^2."""
        logs = [math.log(cell.architecture.width) - cell.log_size / 2 for cell in self.cells]
        return math.exp(log_size / 2 + math.fsum(logs) / len(logs))


def multiple_of(shape: Architecture) -> float:
    """Hidden units over the width: a whole number where they are near one, else to 5 %.

    Units of a gated layer are rounded to what GPUs like, which takes narrow ones further off.
    """
    if shape.style.is_gated and shape.feed_forward == gated_units(shape.width):
        return GATED_RATIO
    ratio = shape.feed_forward / shape.width
    whole = round(ratio)
    if abs(ratio - whole) <= RATIO_STEP / 2 * whole:
        return whole
    return round(math.exp(RATIO_STEP * round(math.log(ratio) / RATIO_STEP)), 3)


def families_of(cells: Iterable[CellResult]) -> tuple[WidthFamily, ...]:
    """All families, shallow ones first."""
    found = [
        WidthFamily(key=key, cells=tuple(sorted(cells, key=lambda cell: (cell.size, cell.mean))))
        for key, cells in grouped(cells, lambda cell: cell.key).items()
    ]
    return tuple(sorted(found, key=lambda family: (family.key.depth, repr(family.key))))


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items of one key together, in the order in which the keys come first."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def of_one_size(
    items: Iterable[Item], size: Callable[[Item], int], tolerance: float
) -> list[list[Item]]:
    """Items that come smallest first, in groups that are within the tolerance of their first."""
    groups: list[list[Item]] = []
    for item in items:
        if groups and size(item) <= size(groups[-1][0]) * (1 + tolerance):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups
