"""Loss against size for each depth, and against the rank of tables next to width."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import altair

from archfit.fit.cells import CellResult, FamilyKey, WidthFamily, families_of, grouped, without_rate
from archfit.fit.comparisons import with_full
from archfit.fit.curves import Curve
from archfit.fit.depths import Crossing
from archfit.fit.fitted import Fits
from archfit.fit.noise import Noise
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row, Rows
from archfit.report.document import Figure, Layout, said
from archfit.spec import lazy_numpy as np
from archfit.spec.sizes import short_size

POINTS = 60  # of a curve
MOST_CROSSINGS = 8  # in a panel; above it those of neighbouring depths only


@dataclass(frozen=True, kw_only=True, slots=True)
class SizePanel:
    """Families that differ in depth only, in one panel."""

    title: str
    families: tuple[WidthFamily, ...]
    curves: tuple[Curve, ...]
    crossings: tuple[Crossing, ...]

    @property
    def depths(self) -> tuple[int, ...]:
        """All that are shown."""
        return tuple(sorted({family.key.depth for family in self.families}))

    @property
    def words(self) -> str:
        """Where depths cross, for those who do not see the chart."""
        crossings = ", ".join(said("sweep.crossing", each) for each in self.crossings)
        return f"{crossings or 'no crossing in range'}."

    @property
    def losses(self) -> list[float]:
        """All that the panel shows."""
        runs = [loss for family in self.families for cell in family.cells for loss in cell.losses]
        return runs + look.numbers((r for c in self.curves for r in curve_rows(c)), "low", "high")


def size_panels(fits: Fits, labels: Mapping[str, str]) -> tuple[SizePanel, ...]:
    """A panel for each vocabulary, cap and recipe in which some depth has a curve."""
    curves = grouped(fits.curves, lambda curve: curve.family.key.any_depth)
    families = families_of(fits.cells)
    words, panels = look.distinguishing_words(list(curves), labels), []

    def order(question: FamilyKey) -> tuple[object, ...]:
        """Large vocabularies and full tables first, then tighter and tighter caps."""
        caps = tuple(-getattr(question, name).inner for name in question.factorised)
        steps = question.attention_step, repr(question)
        return -question.input.vocab, question.data_hash, len(caps) > 0, caps, *steps

    for question in sorted(curves, key=order):
        found = [c for c in fits.crossings if c.shallow.any_depth == question and c.is_crossing]
        if len(found) > MOST_CROSSINGS:
            found = [crossing for crossing in found if crossing.neighbours]
        panel = SizePanel(
            title=words[question],
            families=tuple(family for family in families if family.key.any_depth == question),
            curves=tuple(curves[question]),
            crossings=tuple(found),
        )
        panels.append(panel)
    return tuple(panels)


def size_figure(panels: Sequence[SizePanel]) -> Figure:
    """The figure of these panels, of which there is at least one."""
    drawn = panels[: look.MOST_PANELS]
    depths = [*map(str, sorted({depth for panel in drawn for depth in panel.depths}))]
    words = [panel.words if len(drawn) == 1 else f"{panel.title}: {panel.words}" for panel in drawn]
    described = f"Loss against block parameters for depths {', '.join(depths)}: {' '.join(words)}"
    left = len(panels) - len(drawn)
    return Figure.of("loss-against-size", described, drawn, depths, left=left)


def size_chart(
    panels: Sequence[SizePanel], names: Sequence[str], page: Layout
) -> altair.ConcatChart:
    """Loss over size, a curve a depth, on one scale of losses where the data are the same."""
    layout = page.for_panels(len(panels))
    sizes = look.log_ends(c.size for p in panels for family in p.families for c in family.cells)
    losses = [look.ends(panel.losses) for panel in panels]
    if len({panel.families[0].key.data_hash for panel in panels}) == 1:  # they are compared
        losses = [look.ends(loss for p in panels for loss in p.losses)] * len(panels)
    shown = zip(panels, losses, strict=True)
    drawn = [_panel(panel, names, Frame(sizes, ends), layout) for panel, ends in shown]
    return look.side_by_side(drawn, layout)


def _panel(
    panel: SizePanel, names: Sequence[str], frame: Frame, layout: Layout
) -> Panel | altair.VConcatChart:
    """The panel, whose frame are its sizes and losses, above a strip of its crossings."""
    assert frame.x is not None
    (least, most, _), curves = frame.x, {curve.family.key: curve for curve in panel.curves}
    crossings: list[Row] = []
    beyond: list[Row] = []  # where an interval ends beyond the sizes that are shown
    for crossing in panel.crossings:
        size, low, high = crossing.size.value or 0, crossing.size.low, crossing.size.high
        name = f"{crossing.shallow.depth} and {crossing.deep.depth}: {short_size(size)}"
        on_curve = float(curves[crossing.shallow].mean(np.array([math.log(size)]))[0])
        ends = {"low": max(low or least, least), "high": min(high or most, most)}
        crossings.append({"row": name, "size": size, "loss": on_curve, **ends})
        if low is None or low < least:
            beyond.append({"row": name, "size": least, "shape": "triangle-left"})
        if high is None or high > most:
            beyond.append({"row": name, "size": most, "shape": "triangle-right"})
    rows: dict[str, Rows] = {
        "curves": [row for curve in panel.curves for row in curve_rows(curve)],
        "runs": [
            _row(cell)
            | {"depth": str(family.key.depth), "size": cell.size, "loss": loss, "run": at}
            for family in panel.families
            for cell in family.cells
            for at, loss in enumerate(cell.losses, start=1)
        ],
        "crossings": crossings,
        "open": beyond,
    }
    main = look.panel("size", rows, frame, layout, names, panel.title)
    if not crossings:
        return main
    below = Frame(frame.x, [str(row["row"]) for row in crossings])
    strip = look.panel("size-crossings", rows, below, layout).resolve_scale(shape="independent")
    return altair.vconcat(main, strip, spacing=4)


def curve_rows(curve: Curve) -> list[Row]:
    """Points along a fitted curve with the ends of its band."""
    points = np.linspace(*curve.family.log_range, POINTS)
    low, high = curve.band(points)
    return [
        {
            "depth": str(curve.family.key.depth),
            "size": math.exp(point),
            "width": curve.family.width_at(float(point)),
            "loss": float(loss),
            "low": float(least),
            "high": float(most),
        }
        for point, loss, least, most in zip(points, curve.mean(points), low, high, strict=True)
    ]


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
            means = ", ".join(f"{cell.rank} {cell.mean:.3f}" for cell in cells)
            parts.append(f"{tables} rank {means}")
        return f"{self.title}: {'; '.join(parts)}; full tables {self.full.mean:.3f} nats."

    def losses(self, cells: Sequence[CellResult]) -> Ends:
        """The ends of an axis that shows the runs and intervals of these cells."""
        rows = self.rows(cells)
        means = look.numbers(rows["means"], "low", "high")
        return look.ends(means + look.numbers(rows["runs"], "loss"))

    def rows(self, cells: Sequence[CellResult]) -> dict[str, Rows]:
        """Runs, and means with 90 % intervals, which are points where noise is not known."""
        means = []
        for cell in cells:
            half = self.noise.t(cell) * self.noise.error(cell) if self.noise.is_enough else 0.0
            half = half if math.isfinite(half) else 0.0
            interval = {"loss": cell.mean, "low": cell.mean - half, "high": cell.mean + half}
            means.append(_row(cell) | interval)
        runs = [_row(cell) | {"loss": loss} for cell in cells for loss in cell.losses]
        return {"means": means, "runs": runs}


def table_words(cell: CellResult) -> str:
    """The factorised tables of a cell."""
    return " and ".join(cell.key.factorised)


def rank_figure(
    fits: Fits, labels: Mapping[str, str], *, of_positions: bool = False
) -> Figure | None:
    """Wies et al. 2021, figure 2, or figure 7 `of_positions`; None where nothing was varied."""
    if of_positions:
        found = _rank_panels(fits, labels, lambda names: names in (POSITIONS, ("embedding",)))
        panels = [panel for panel in found if "positions" in panel.tables][: look.MOST_PANELS]
        name, varied = "position-ranks", "the rank of positions and of the vocabulary"
    else:
        found = _rank_panels(fits, labels, lambda names: names != POSITIONS)
        varying = [one for one in found if len({c.architecture.width for c in one.widths}) > 1]
        panels = varying[: look.MOST_PANELS // 2]
        name, varied = "loss-against-rank-and-width", "rank and against width"
    if not panels:
        return None
    words = f"Loss against {varied}: {' '.join(panel.words for panel in panels)}"
    return Figure.of(name, words, panels, of_positions)


def _rank_panels(
    fits: Fits, labels: Mapping[str, str], is_wanted: Callable[[Tables], bool]
) -> list[RankPanel]:
    """Networks that were trained with full tables and with two ranks or more."""
    groups: dict[tuple[object, ...], list[CellResult]] = defaultdict(list)
    by_shape = {(c.architecture, c.data_hash, without_rate(c.recipe)): c for c in fits.cells}
    for cell in fits.cells:
        names = cell.key.factorised
        if names and is_wanted(names):
            full = with_full(cell.architecture, names)
            groups[full, cell.data_hash, without_rate(cell.recipe)].append(cell)
    found = [
        (by_shape[shape], cells)
        for shape, cells in groups.items()
        if shape in by_shape and len({cell.rank for cell in cells}) > 1
    ]
    words = look.distinguishing_words([full.key for full, _ in found], labels)
    families = {family.key: family for family in families_of(fits.cells)}
    return [
        RankPanel(
            title=look.network_words(full.key, full.architecture.width, words),
            full=full,
            limited=tuple(sorted(limited, key=lambda cell: cell.rank)),
            widths=families[full.key].cells,
            curve=tuple(curve for curve in fits.curves if curve.family.key == full.key),
            noise=fits.noise_about(full),
        )
        for full, limited in found
    ]


def rank_chart(panels: Sequence[RankPanel], of_positions: bool, page: Layout) -> altair.ConcatChart:
    """Loss over ranks, and unless they are `of_positions` beside each panel over widths."""
    layout, charts = page.for_panels(len(panels)) if of_positions else page, []
    names = sorted({name for panel in panels for name in panel.tables})
    for panel in panels:
        width, depth = panel.full.architecture.width, panel.full.architecture.depth
        beside = [panel.full] if of_positions else panel.widths
        losses = panel.losses((*panel.limited, *beside))
        frame = Frame(look.log_ticks([*(cell.rank for cell in panel.limited), width]), losses)
        lines = {"full": [{"loss": panel.full.mean}], "width": [{"rank": float(width)}]}
        rows = panel.rows(panel.limited) | lines
        charts.append(look.panel("ranks", rows, frame, layout, names, f"{panel.title}: ranks"))
        if not of_positions:
            widths = look.log_ticks([cell.architecture.width for cell in panel.widths])
            curves = [row for curve in panel.curve for row in curve_rows(curve)]
            rows, title = panel.rows(panel.widths) | {"curves": curves}, f"depth {depth}: widths"
            charts.append(look.panel("widths", rows, Frame(widths, losses), layout, title=title))
    return look.side_by_side(charts, layout)


def _row(cell: CellResult) -> dict[str, object]:
    row: dict[str, object] = {"width": cell.architecture.width}
    if cell.key.factorised:
        row |= {"tables": table_words(cell), "rank": cell.rank}
    return row
