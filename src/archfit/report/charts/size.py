"""Loss against size for each depth: runs as points, fitted curves with bands, crossings."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import altair

from archfit.fit.cells import FamilyKey, WidthFamily, families_of
from archfit.fit.conclusions import short_size
from archfit.fit.curves import Curve
from archfit.fit.depths import Crossing
from archfit.fit.fitted import Fits
from archfit.report.charts import look
from archfit.report.charts.look import Frame, Panel, Row
from archfit.report.document import Figure, Layout

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
        crossings = [
            f"depths {crossing.shallow.depth} and {crossing.deep.depth} cross at "
            f"{short_size(crossing.size.value or 0)}"
            for crossing in self.crossings
        ]
        return f"{', '.join(crossings) or 'no crossing in range'}."

    @property
    def losses(self) -> list[float]:
        """All that the panel shows."""
        runs = [loss for family in self.families for cell in family.cells for loss in cell.losses]
        return runs + look.numbers((r for c in self.curves for r in curve_rows(c)), "low", "high")


def size_panels(fits: Fits, labels: Mapping[str, str]) -> tuple[SizePanel, ...]:
    """A panel for each vocabulary, cap and recipe in which some depth has a curve."""
    curves: dict[FamilyKey, list[Curve]] = defaultdict(list)
    for curve in fits.curves:
        curves[curve.family.key.any_depth].append(curve)
    families = families_of(fits.cells)
    words = look.distinguishing_words(list(curves), labels)
    return tuple(
        SizePanel(
            title=words[question],
            families=tuple(family for family in families if family.key.any_depth == question),
            curves=tuple(curves[question]),
            crossings=_drawn_crossings(fits, question),
        )
        for question in sorted(curves, key=_order)
    )


def _order(question: FamilyKey) -> tuple[object, ...]:
    """Large vocabularies and full tables first, then tighter and tighter caps."""
    caps = tuple(-getattr(question, name).inner for name in question.factorised)
    steps = question.attention_step, repr(question)
    return -question.input.vocab, question.data_hash, len(caps) > 0, caps, *steps


def _drawn_crossings(fits: Fits, question: FamilyKey) -> tuple[Crossing, ...]:
    found = [c for c in fits.crossings if c.shallow.any_depth == question and c.is_crossing]
    if len(found) > MOST_CROSSINGS:
        found = [crossing for crossing in found if crossing.neighbours]
    return tuple(found)


def size_figure(panels: Sequence[SizePanel]) -> Figure:
    """The figure of these panels, of which there is at least one."""
    drawn = panels[: look.MOST_PANELS]
    depths = [*map(str, sorted({depth for panel in drawn for depth in panel.depths}))]
    words = [panel.words if len(drawn) == 1 else f"{panel.title}: {panel.words}" for panel in drawn]
    return Figure.of(
        "loss-against-size",
        f"Loss against block parameters for depths {', '.join(depths)}: {' '.join(words)}",
        partial(_chart, drawn, depths),
        left=len(panels) - len(drawn),
    )


def _chart(panels: Sequence[SizePanel], names: Sequence[str], page: Layout) -> altair.ConcatChart:
    layout = page.for_panels(len(panels))
    sizes = look.log_ends(c.size for p in panels for family in p.families for c in family.cells)
    losses = [look.ends(panel.losses) for panel in panels]
    if len({panel.families[0].key.data_hash for panel in panels}) == 1:  # they are compared
        losses = [look.ends(loss for p in panels for loss in p.losses)] * len(panels)
    frames = [Frame(sizes, ends) for ends in losses]
    drawn = [_panel(p, names, f, layout) for p, f in zip(panels, frames, strict=True)]
    return look.side_by_side(drawn, layout)


def _panel(
    panel: SizePanel, names: Sequence[str], frame: Frame, layout: Layout
) -> Panel | altair.VConcatChart:
    """The panel, whose frame are its sizes and losses, above a strip of its crossings."""
    assert frame.x is not None
    crossings = [_crossing_row(crossing, panel, frame.x) for crossing in panel.crossings]
    rows = {
        "curves": [row for curve in panel.curves for row in curve_rows(curve)],
        "runs": [row for family in panel.families for row in _run_rows(family)],
        "crossings": crossings,
        "open": [
            {"row": row["row"], "size": row[end], "shape": shape}
            for row in crossings
            for end, shape in (("low", "triangle-left"), ("high", "triangle-right"))
            if row[f"{end}_is_open"]
        ],
    }
    main = look.panel("size", rows, frame, layout, names, panel.title)
    if not crossings:
        return main
    below = Frame(frame.x, [str(row["row"]) for row in crossings])
    strip = look.panel("size-crossings", rows, below, layout).resolve_scale(shape="independent")
    return altair.vconcat(main, strip, spacing=4)


def curve_rows(curve: Curve) -> list[Row]:
    """Points along a fitted curve with the ends of its band."""
    import numpy as np

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


def _run_rows(family: WidthFamily) -> list[Row]:
    return [
        {
            "depth": str(family.key.depth),
            "width": cell.architecture.width,
            "size": cell.size,
            "loss": loss,
            "run": run,
        }
        for cell in family.cells
        for run, loss in enumerate(cell.losses, start=1)
    ]


def _crossing_row(crossing: Crossing, panel: SizePanel, sizes: look.Ends) -> Row:
    """A crossing, its height on the curve of the shallow depth, and its interval in the frame."""
    import numpy as np

    size, low, high = crossing.size.value, crossing.size.low, crossing.size.high
    assert size is not None
    (shallow,) = [curve for curve in panel.curves if curve.family.key == crossing.shallow]
    return {
        "row": f"{crossing.shallow.depth} and {crossing.deep.depth}: {short_size(size)}",
        "size": size,
        "loss": float(shallow.mean(np.array([math.log(size)]))[0]),
        "low": sizes[0] if low is None else max(low, sizes[0]),
        "high": sizes[1] if high is None else min(high, sizes[1]),
        "low_is_open": low is None or low < sizes[0],
        "high_is_open": high is None or high > sizes[1],
    }
