"""Loss against the rank of a table, next to loss against width; and positions next to tokens."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import altair

from archfit.fit.cells import Cell, FamilyKey, families_of, key_of, without_rate
from archfit.fit.comparisons import with_full
from archfit.fit.curves import Curve
from archfit.fit.fitted import Fits
from archfit.fit.noise import Noise
from archfit.report.charts.look import (
    MOST_PANELS,
    NATS,
    Row,
    ends,
    in_dashes,
    in_series,
    linear_y,
    log_x_at,
    rows_of,
    side_by_side,
    told_apart,
)
from archfit.report.charts.size import curve_rows
from archfit.report.document import Figure, Layout
from archfit.spec import Factorised

if TYPE_CHECKING:
    from archfit.report.document import Drawing

Tables = tuple[str, ...]
POSITIONS: Tables = ("positions",)
TABLES = "limited table"
FULL = "full tables"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """One network with full tables, and the same with tables of limited rank."""

    title: str
    full: Cell
    limited: tuple[Cell, ...]
    widths: tuple[Cell, ...]  # the network of full tables at every width, its own among them
    curve: tuple[Curve, ...]  # of those; none where they are too few
    noise: Noise

    @property
    def tables(self) -> tuple[str, ...]:
        """Which tables are limited, in words."""
        return tuple(sorted({table_words(cell) for cell in self.limited}))

    @property
    def ranks(self) -> tuple[int, ...]:
        """All that were trained."""
        return tuple(sorted({rank_of(cell) for cell in self.limited}))


def table_words(cell: Cell) -> str:
    """The factorised tables of a cell."""
    return " and ".join(key_of(cell).factorised)


def rank_of(cell: Cell) -> int:
    """The least inner size of its factorised tables; one above the width is a control."""
    tables = (getattr(cell.architecture, name) for name in key_of(cell).factorised)
    return min(table.inner for table in tables if isinstance(table, Factorised))


def rank_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """Wies et al. 2021, figure 2; None where ranks or widths were not varied."""
    panels = [
        one
        for one in _ranked(fits, labels, lambda names: names != POSITIONS)
        if len({cell.architecture.width for cell in one.widths}) > 1
    ][: MOST_PANELS // 2]
    if not panels:
        return None
    return Figure(
        name="loss-against-rank-and-width",
        title="Loss against rank, next to loss against width",
        caption="First one network whose tables have a limited rank, then the same network with "
        "full tables, narrower, on the same scale of losses. Small points are runs; large ones are "
        "means with 90 % intervals; the band is that of the fitted curve. The dashed rule is the "
        "network with full tables, the dotted one its width: ranks from there on limit nothing, "
        "and are controls.",
        description="Loss against rank and against width: "
        + " ".join(f"{one.title}: {_means(one)}." for one in panels),
        chart=partial(_rank_chart, panels),
    )


def position_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """Wies et al. 2021, figure 7; None where no position table was limited by itself."""
    panels = [
        one
        for one in _ranked(fits, labels, lambda names: names in (POSITIONS, ("embedding",)))
        if table_words_of(POSITIONS) in one.tables
    ][:MOST_PANELS]
    if not panels:
        return None
    return Figure(
        name="position-ranks",
        title="Ranks of positions, next to ranks of the vocabulary",
        caption="One network in which the table of positions, or that of the vocabulary "
        "(embedding), has a limited rank. Small points are runs; large ones are means with 90 % "
        "intervals. The dashed rule is the network with full tables, the dotted one its width.",
        description="Loss against the rank of positions and of the vocabulary: "
        + " ".join(f"{one.title}: {_means(one)}." for one in panels),
        chart=partial(_position_chart, panels),
    )


def table_words_of(names: Tables) -> str:
    """Tables in words."""
    return " and ".join(names)


def _ranked(
    fits: Fits, labels: Mapping[str, str], is_wanted: Callable[[Tables], bool]
) -> list[Ranked]:
    """Networks that were trained with full tables and with two ranks or more."""
    groups: dict[tuple[object, ...], list[Cell]] = defaultdict(list)
    by_shape = {(c.architecture, c.data_hash, without_rate(c.recipe)): c for c in fits.cells}
    for cell in fits.cells:
        names = key_of(cell).factorised
        if names and is_wanted(names):
            full = with_full(cell.architecture, names)
            groups[full, cell.data_hash, without_rate(cell.recipe)].append(cell)
    found = [
        (by_shape[shape], cells)
        for shape, cells in groups.items()
        if shape in by_shape and len({rank_of(cell) for cell in cells}) > 1
    ]
    titles = told_apart([key_of(full) for full, _ in found], labels)
    return [_one(fits, full, cells, titles) for full, cells in found]


def _one(
    fits: Fits, full: Cell, limited: Sequence[Cell], titles: Mapping[FamilyKey, str]
) -> Ranked:
    key, shape = key_of(full), full.architecture
    (family,) = [family for family in families_of(fits.cells) if family.key == key]
    words = "" if titles[key] == FULL else f", {titles[key]}"
    return Ranked(
        title=f"depth {shape.depth}, width {shape.width}{words}",
        full=full,
        limited=tuple(sorted(limited, key=rank_of)),
        widths=family.cells,
        curve=tuple(curve for curve in fits.curves if curve.family.key == key),
        noise=next(one for one in fits.noise if (one.data_hash, one.recipe) == key.group),
    )


def _means(one: Ranked) -> str:
    parts = [
        f"{tables} rank "
        + ", ".join(
            f"{rank_of(cell)} {cell.mean:.3f}"
            for cell in one.limited
            if table_words(cell) == tables
        )
        for tables in one.tables
    ]
    return f"{'; '.join(parts)}; full tables {one.full.mean:.3f} nats"


def _rank_chart(panels: Sequence[Ranked], layout: Layout) -> "Drawing":
    names = sorted({name for one in panels for name in one.tables})
    charts = []
    for one in panels:
        losses = _frame(one, (*one.limited, *one.widths))
        charts += [
            _ranks(one, names, losses, layout),
            _widths(one, losses, layout),
        ]
    return side_by_side(charts, layout)


def _position_chart(panels: Sequence[Ranked], page: Layout) -> "Drawing":
    layout = page.for_panels(len(panels))
    names = sorted({name for one in panels for name in one.tables})
    charts = [_ranks(one, names, _frame(one, (*one.limited, one.full)), layout) for one in panels]
    return side_by_side(charts, layout)


def _frame(one: Ranked, cells: Sequence[Cell]) -> tuple[float, float]:
    rows = [_mean(cell, one.noise) for cell in cells]
    return ends(
        value
        for row, cell in zip(rows, cells, strict=True)
        for value in (float(row["low"]), float(row["high"]), *cell.losses)
    )


def _ranks(
    one: Ranked, names: Sequence[str], losses: tuple[float, float], layout: Layout
) -> altair.LayerChart | altair.FacetChart:
    width = one.full.architecture.width
    x = log_x_at("rank", "rank (inner size of the table)", (*one.ranks, width))
    means = [_mean(cell, one.noise) for cell in one.limited]
    y = linear_y("loss", NATS, losses)
    look = in_series("tables", TABLES, names, layout)
    return altair.layer(
        rows_of([{"loss": one.full.mean}])
        .mark_rule(strokeDash=[6, 3], color="#555555")
        .encode(y=y),
        rows_of([{"rank": float(width)}]).mark_rule(strokeDash=[1, 3], color="#555555").encode(x=x),
        rows_of(means)
        .mark_line(strokeWidth=1.5)
        .encode(x=x, y=y, **in_dashes("tables", TABLES, names, layout)),
        rows_of(means)
        .mark_rule(strokeWidth=2)
        .encode(x=x, y=linear_y("low", NATS, losses), y2="high:Q", color=look["color"]),
        rows_of([row for cell in one.limited for row in _runs(cell)])
        .mark_point(size=16, filled=True, opacity=0.5)
        .encode(x=x, y=y, **look),
        rows_of(means)
        .mark_point(size=75, filled=True, opacity=1)
        .encode(x=x, y=y, **look, tooltip=["tables:N", "rank:Q", "loss:Q", "low:Q", "high:Q"]),
        width=layout.width,
        height=240,
        title=altair.TitleParams(f"{one.title}: ranks", fontSize=12),
    )


def _widths(
    one: Ranked, losses: tuple[float, float], layout: Layout
) -> altair.LayerChart | altair.FacetChart:
    x = log_x_at("width", "width, full tables", [cell.architecture.width for cell in one.widths])
    y = linear_y("loss", NATS, losses)
    curves = [row for curve in one.curve for row in curve_rows(curve)]
    means = [_mean(cell, one.noise) for cell in one.widths]
    black = {"color": altair.value("#222222")}
    return altair.layer(
        rows_of(curves)
        .mark_area(opacity=0.2, clip=True)
        .encode(x=x, y=linear_y("low", NATS, losses), y2="high:Q", **black),
        rows_of(curves).mark_line(strokeWidth=1.5, clip=True).encode(x=x, y=y, **black),
        rows_of(means)
        .mark_rule(strokeWidth=2)
        .encode(x=x, y=linear_y("low", NATS, losses), y2="high:Q", **black),
        rows_of([row for cell in one.widths for row in _runs(cell)])
        .mark_point(size=16, filled=True, opacity=0.5)
        .encode(x=x, y=y, **black),
        rows_of(means)
        .mark_point(size=75, filled=True, opacity=1)
        .encode(x=x, y=y, **black, tooltip=["width:Q", "loss:Q", "low:Q", "high:Q"]),
        width=layout.width,
        height=240,
        title=altair.TitleParams(f"depth {one.full.architecture.depth}: widths", fontSize=12),
    )


def _row(cell: Cell) -> Row:
    row: Row = {"width": cell.architecture.width}
    if key_of(cell).factorised:
        row |= {"tables": table_words(cell), "rank": rank_of(cell)}
    return row


def _runs(cell: Cell) -> list[Row]:
    return [_row(cell) | {"loss": loss} for loss in cell.losses]


def _mean(cell: Cell, noise: Noise) -> Row:
    """The mean of a cell with its 90 % interval, which is a point where noise is not known."""
    half = noise.t(cell) * noise.error(cell) if noise.is_enough else 0.0
    half = half if math.isfinite(half) else 0.0
    return _row(cell) | {"loss": cell.mean, "low": cell.mean - half, "high": cell.mean + half}
