"""Families: cells that differ only in width, whose loss is a curve over size."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from archfit.fit.cells import Cell, without_rate
from archfit.spec import (
    Attention,
    Factorised,
    Full,
    Head,
    Input,
    Recipe,
    Table,
)

RATIO_STEP = math.log(2) / 14  # 5 %: widths that heads do not divide miss their ratio by a little


@dataclass(frozen=True, kw_only=True, slots=True)
class FamilyKey:
    """Everything that the cells of a family share."""

    data_hash: str
    recipe: Recipe  # without its rate
    depth: int
    attention: Attention
    attention_step: int  # ln (H d_a / d_x) in steps of 5 %; 0 is the usual ratio of 1
    feed_forward_multiple: int
    context: int
    input: Input
    embedding: Table
    positions: Table
    head: Head

    @property
    def group(self) -> tuple[str, Recipe]:
        """What losses must share to be compared, and noise to be pooled."""
        return self.data_hash, self.recipe

    @property
    def factorised(self) -> tuple[str, ...]:
        """Names of the tables that are products of two."""
        names = ("embedding", "positions", "head")
        return tuple(name for name in names if isinstance(getattr(self, name), Factorised))

    @property
    def with_full_tables(self) -> "FamilyKey":
        """The family that no factorised table limits."""
        full: dict[str, Full] = {name: Full() for name in self.factorised}
        return replace(self, **full)  # type: ignore[arg-type]  # each is a table

    @property
    def words(self) -> str:
        """What sets it apart from the plain network, for sentences; empty for that one."""
        parts = [f"{name} rank {getattr(self, name).inner}" for name in self.factorised]
        if self.attention_step:
            parts.append(f"attention ratio {math.exp(self.attention_step * RATIO_STEP):.2g}")
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Cells of one key, smallest first."""

    key: FamilyKey
    cells: tuple[Cell, ...]

    @property
    def sizes(self) -> int:
        """Different sizes."""
        return len({cell.size for cell in self.cells})

    @property
    def seeds(self) -> int:
        """The fewest of any cell."""
        return min(cell.seeds for cell in self.cells)

    @property
    def log_range(self) -> tuple[float, float]:
        """ln N of the smallest and the largest."""
        return self.cells[0].log_size, self.cells[-1].log_size

    def width_at(self, log_size: float) -> float:
        """The width of a member of this size: N = c d^2."""
        logs = [math.log(cell.architecture.width) - cell.log_size / 2 for cell in self.cells]
        return math.exp(log_size / 2 + math.fsum(logs) / len(logs))


def key_of(cell: Cell) -> FamilyKey:
    """The family that a cell belongs to."""
    shape = cell.architecture
    return FamilyKey(
        data_hash=cell.data_hash,
        recipe=without_rate(cell.recipe),
        depth=shape.depth,
        attention=shape.attention,
        attention_step=round(math.log(shape.attention_ratio) / RATIO_STEP),
        feed_forward_multiple=shape.feed_forward_multiple,
        context=shape.context,
        input=shape.input,
        embedding=shape.embedding,
        positions=shape.positions,
        head=shape.head,
    )


def families_of(cells: Iterable[Cell]) -> tuple[Family, ...]:
    """All families, shallow ones first."""
    members: dict[FamilyKey, list[Cell]] = defaultdict(list)
    for cell in cells:
        members[key_of(cell)].append(cell)
    found = [
        Family(key=key, cells=tuple(sorted(cells, key=lambda cell: (cell.size, cell.mean))))
        for key, cells in members.items()
    ]
    return tuple(sorted(found, key=lambda family: (family.key.depth, repr(family.key))))
