"""The numbers of a fit as tables of words, for the page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from archfit.fit.cells import Cell
from archfit.fit.conclusions import short_size
from archfit.fit.families import key_of
from archfit.fit.fitted import Fits
from archfit.fit.redundancy import Redundancy

NOT_KNOWN = "…"
LONGEST_NUMBER = 40  # characters


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table under its title."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sweep_tables(fits: Fits, labels: Mapping[str, str]) -> tuple[Table, ...]:
    """Every kind of answer that the fit has, then all cells; intervals are of 90 %."""
    every = (
        _crossings(fits, labels),
        _redundancy(fits),
        _contrasts(fits),
        _best_depths(fits, labels),
        _comparisons(fits, labels),
        _laws(fits),
        _cells(fits, labels),
    )
    return tuple(table for table in every if table.rows)


def _crossings(fits: Fits, labels: Mapping[str, str]) -> Table:
    return Table(
        title="Depths at equal size",
        columns=("depths", "tables", "data", "verdict", "block parameters", "90 %", "width",
                 "seeds", "seeds needed"),
        rows=tuple(
            (
                f"{item.shallow.depth} and {item.deep.depth}",
                item.shallow.words or "full",
                _data(item.shallow.data_hash, labels),
                item.verdict,
                _size(item.size),
                f"{_size(item.low)} to {_size(item.high)}" if item.is_crossing else "",
                "" if item.width is None else f"{item.width:.0f}",
                str(item.seeds),
                "" if item.seeds_needed is None else str(item.seeds_needed),
            )
            for item in fits.crossings
        ),
    )  # fmt: skip


def _redundancy(fits: Fits) -> Table:
    return Table(
        title="Redundancy",
        columns=("bottleneck", "ratio", "depth", "width", "redundant", "90 %", "seeds"),
        rows=tuple(
            (
                " and ".join(item.bottleneck),
                f"{item.ratio:.3g}",
                str(item.family.depth),
                str(item.cell.architecture.width),
                _saved(item),
                f"{_share(item.low)} to {_share(item.high)}",
                str(item.seeds),
            )
            for item in fits.redundancy
        ),
    )


def _saved(item: Redundancy) -> str:
    if item.value is not None:
        return _share(item.value)
    if item.low is not None:
        return f"at least {_share(item.low)}"
    return "not known" if item.high is None else f"at most {_share(item.high)}"


def _contrasts(fits: Fits) -> Table:
    return Table(
        title="Cells that differ in their tables",
        columns=("first", "less second", "depth", "width", "nats per token", "90 %", "seeds"),
        rows=tuple(
            (
                item.first.words or "full tables",
                item.second.words or "full tables",
                str(item.first.depth),
                str(item.width),
                f"{item.difference:+.4f}",
                f"{item.low:+.4f} to {item.high:+.4f}",
                str(item.seeds),
            )
            for item in fits.contrasts
        ),
    )


def _best_depths(fits: Fits, labels: Mapping[str, str]) -> Table:
    return Table(
        title="Best depth at equal size",
        columns=("data", "tables", "block parameters", "best", "not told from", "of", "seeds"),
        rows=tuple(
            (
                _data(item.family.data_hash, labels),
                item.family.words or "full",
                _size(item.size),
                str(item.depth),
                ", ".join(map(str, item.ties)),
                ", ".join(map(str, item.depths)),
                str(item.seeds),
            )
            for item in fits.best_depth
        ),
    )


def _comparisons(fits: Fits, labels: Mapping[str, str]) -> Table:
    return Table(
        title="Networks of equal size that read different tokens",
        columns=("parameters", "data", "vocabulary", "patch", "depth", "width", "bits per byte",
                 "more than the best", "90 %", "seeds"),
        rows=tuple(
            (
                f"{standing.cell.architecture.params:,}",
                _data(standing.cell.data_hash, labels),
                f"{standing.cell.architecture.input.vocab:,}",
                str(standing.cell.architecture.input.tokens_per_position),
                str(standing.cell.architecture.depth),
                str(standing.cell.architecture.width),
                f"{standing.bits_per_byte:.4f}",
                f"{standing.difference:+.4f}",
                f"{standing.low:+.4f} to {standing.high:+.4f}" if standing.difference else "",
                str(standing.seeds),
            )
            for item in fits.comparisons
            for standing in item.standings
        ),
    )  # fmt: skip


def _laws(fits: Fits) -> Table:
    return Table(
        title="Laws",
        columns=("law", "of", "form", "parameter", "value", "90 %", "points", "seeds"),
        rows=tuple(
            (
                item.kind,
                f"depth {item.family.depth}" if item.kind == "size" else "crossings",
                item.form,
                parameter.name,
                f"{parameter.value:.4g}",
                f"{_real(parameter.low)} to {_real(parameter.high)}",
                str(item.points),
                str(item.seeds),
            )
            for item in fits.laws
            for parameter in item.parameters
        ),
    )


def _cells(fits: Fits, labels: Mapping[str, str]) -> Table:
    ordered = sorted(fits.cells, key=lambda cell: (cell.data_hash, cell.size, repr(cell)))
    return Table(
        title="All cells",
        columns=("data", "depth", "width", "tables", "block parameters", "all parameters",
                 "nats per token", "spread", "bits per byte", "seeds"),
        rows=tuple(_cell(cell, labels) for cell in ordered),
    )  # fmt: skip


def _cell(cell: Cell, labels: Mapping[str, str]) -> tuple[str, ...]:
    shape = cell.architecture
    return (
        _data(cell.data_hash, labels),
        str(shape.depth),
        str(shape.width),
        key_of(cell).words or "full",
        f"{cell.size:,}",
        f"{shape.params:,}",
        f"{cell.mean:.4f}",
        f"{(cell.squares / (cell.seeds - 1)) ** 0.5:.4f}" if cell.seeds > 1 else "",
        f"{cell.bits_per_byte:.4f}",
        str(cell.seeds),
    )


def numeric_columns(table: Table) -> frozenset[int]:
    """Places of the columns that hold numbers, which are set to the right."""
    return frozenset(
        at for at in range(len(table.columns)) if _are_numbers(row[at] for row in table.rows)
    )


def _are_numbers(texts: Iterable[str]) -> bool:
    """Whether all begin like one; a hash may, but is too long."""
    return all(
        not text or ((text[0].isdigit() or text[0] in "+-…") and len(text) < LONGEST_NUMBER)
        for text in texts
    )


def _data(data_hash: str, labels: Mapping[str, str]) -> str:
    return labels.get(data_hash, data_hash[:8])


def _size(size: float | None) -> str:
    return NOT_KNOWN if size is None else short_size(size)


def _share(share: float | None) -> str:
    return NOT_KNOWN if share is None else f"{share:.1%}"


def _real(value: float | None) -> str:
    return NOT_KNOWN if value is None else f"{value:.4g}"
