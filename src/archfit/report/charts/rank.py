"""Loss against the rank of a table, next to loss against width; and positions next to tokens."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import altair

from archfit.fit.cells import CellResult, families_of, key_of, without_rate
from archfit.fit.comparisons import with_full
from archfit.fit.curves import Curve
from archfit.fit.fitted import Fits
from archfit.fit.noise import Noise
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row, Rows
from archfit.report.charts.size import curve_rows
from archfit.report.document import Figure, Layout
from archfit.spec import Factorised

Tables = tuple[str, ...]
POSITIONS: Tables = ("positions",)


@dataclass(frozen=True, kw_only=True, slots=True)
class RankPanel:
    """One network with full tables, and the same with tables of limited rank."""

    title: str
    full: CellResult
    limited: tuple[CellResult, ...]
    widths: tuple[CellResult, ...]  # the network of full tables at every width, its own among them
    curve: tuple[Curve, ...]  # of those; none where they are too few
    noise: Noise

    @property
    def tables(self) -> tuple[str, ...]:
        """Which tables are limited, in words."""
        return tuple(sorted({table_words(cell) for cell in self.limited}))

    @property
    def words(self) -> str:
        """Its mean losses, for those who do not see the chart."""
        parts = []
        for tables in self.tables:
            cells = [cell for cell in self.limited if table_words(cell) == tables]
            means = ", ".join(f"{rank_of(cell)} {cell.mean:.3f}" for cell in cells)
            parts.append(f"{tables} rank {means}")
        return f"{self.title}: {'; '.join(parts)}; full tables {self.full.mean:.3f} nats."

    def losses(self, cells: Sequence[CellResult]) -> Ends:
        """The ends of an axis that shows the runs and intervals of these cells."""
        means = look.numbers((self.mean(cell) for cell in cells), "low", "high")
        return look.ends([*means, *(loss for cell in cells for loss in cell.losses)])

    def mean(self, cell: CellResult) -> Row:
        """The mean of a cell with its 90 % interval, which is a point where noise is not known."""
        half = self.noise.t(cell) * self.noise.error(cell) if self.noise.is_enough else 0.0
        half = half if math.isfinite(half) else 0.0
        interval: Row = {"low": cell.mean - half, "high": cell.mean + half}
        return _row(cell) | {"loss": cell.mean} | interval


def table_words(cell: CellResult) -> str:
    """The factorised tables of a cell."""
    return " and ".join(key_of(cell).factorised)


def rank_of(cell: CellResult) -> int:
    """The least inner size of its factorised tables; one above the width is a control."""
    tables = (getattr(cell.architecture, name) for name in key_of(cell).factorised)
    return min(table.inner for table in tables if isinstance(table, Factorised))


def rank_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """Wies et al. 2021, figure 2; None where ranks or widths were not varied."""
    panels = [
        panel
        for panel in _rank_panels(fits, labels, lambda names: names != POSITIONS)
        if len({cell.architecture.width for cell in panel.widths}) > 1
    ][: look.MOST_PANELS // 2]
    if not panels:
        return None
    return Figure.of(
        "loss-against-rank-and-width",
        f"Loss against rank and against width: {' '.join(panel.words for panel in panels)}",
        partial(_rank_chart, panels, has_widths=True),
    )


def position_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """Wies et al. 2021, figure 7; None where no position table was limited by itself."""
    panels = [
        panel
        for panel in _rank_panels(fits, labels, lambda names: names in (POSITIONS, ("embedding",)))
        if "positions" in panel.tables
    ][: look.MOST_PANELS]
    if not panels:
        return None
    words = " ".join(panel.words for panel in panels)
    return Figure.of(
        "position-ranks",
        f"Loss against the rank of positions and of the vocabulary: {words}",
        partial(_rank_chart, panels, has_widths=False),
    )


def _rank_panels(
    fits: Fits, labels: Mapping[str, str], is_wanted: Callable[[Tables], bool]
) -> list[RankPanel]:
    """Networks that were trained with full tables and with two ranks or more."""
    groups: dict[tuple[object, ...], list[CellResult]] = defaultdict(list)
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
    words = look.distinguishing_words([key_of(full) for full, _ in found], labels)
    families = {family.key: family for family in families_of(fits.cells)}
    return [
        RankPanel(
            title=look.network_words(key_of(full), full.architecture.width, words),
            full=full,
            limited=tuple(sorted(limited, key=rank_of)),
            widths=families[key_of(full)].cells,
            curve=tuple(curve for curve in fits.curves if curve.family.key == key_of(full)),
            noise=next(n for n in fits.noise if n.group == key_of(full).group),
        )
        for full, limited in found
    ]


def _rank_chart(
    panels: Sequence[RankPanel], page: Layout, *, has_widths: bool
) -> altair.ConcatChart:
    layout = page if has_widths else page.for_panels(len(panels))
    names = sorted({name for panel in panels for name in panel.tables})
    charts = []
    for panel in panels:
        losses = panel.losses((*panel.limited, *(panel.widths if has_widths else [panel.full])))
        charts.append(_ranks(panel, names, losses, layout))
        charts += [_widths(panel, losses, layout)] if has_widths else []
    return look.side_by_side(charts, layout)


def _ranks(panel: RankPanel, names: Sequence[str], losses: Ends, layout: Layout) -> Panel:
    width = panel.full.architecture.width
    frame = Frame(look.log_ticks([*map(rank_of, panel.limited), width]), losses)
    rows: dict[str, Rows] = {
        "full": [{"loss": panel.full.mean}],
        "width": [{"rank": float(width)}],
        "means": [panel.mean(cell) for cell in panel.limited],
        "runs": _run_rows(panel.limited),
    }
    return look.panel("ranks", rows, frame, layout, names, f"{panel.title}: ranks")


def _widths(panel: RankPanel, losses: Ends, layout: Layout) -> Panel:
    frame = Frame(look.log_ticks([cell.architecture.width for cell in panel.widths]), losses)
    rows: dict[str, Rows] = {
        "curves": [row for curve in panel.curve for row in curve_rows(curve)],
        "means": [panel.mean(cell) for cell in panel.widths],
        "runs": _run_rows(panel.widths),
    }
    title = f"depth {panel.full.architecture.depth}: widths"
    return look.panel("widths", rows, frame, layout, title=title)


def _run_rows(cells: Sequence[CellResult]) -> list[Row]:
    return [_row(cell) | {"loss": loss} for cell in cells for loss in cell.losses]


def _row(cell: CellResult) -> Row:
    row: Row = {"width": cell.architecture.width}
    if key_of(cell).factorised:
        row |= {"tables": table_words(cell), "rank": rank_of(cell)}
    return row
