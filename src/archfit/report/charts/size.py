"""Loss against size for each depth: runs as points, fitted curves with bands, crossings."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import altair

from archfit.fit.cells import Family, FamilyKey, families_of
from archfit.fit.conclusions import short_size
from archfit.fit.curves import Curve
from archfit.fit.depths import Crossing
from archfit.fit.fitted import Fits
from archfit.report.charts.look import (
    MOST_PANELS,
    NATS,
    Row,
    ends,
    in_dashes,
    in_series,
    linear_y,
    log_ends,
    log_x,
    question_of,
    rows_of,
    rows_y,
    side_by_side,
    told_apart,
)
from archfit.report.document import Figure, Layout

if TYPE_CHECKING:
    from archfit.report.document import Drawing

POINTS = 60  # of a curve
MOST_CROSSINGS = 8  # in a panel; above it those of neighbouring depths only
ROW = 30  # pixels of a crossing
Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class SizePanel:
    """Families that differ in depth only, in one panel."""

    title: str
    families: tuple[Family, ...]
    curves: tuple[Curve, ...]
    crossings: tuple[Crossing, ...]

    @property
    def depths(self) -> tuple[int, ...]:
        """All that are shown."""
        return tuple(sorted({family.key.depth for family in self.families}))


def size_panels(fits: Fits, labels: Mapping[str, str]) -> tuple[SizePanel, ...]:
    """A panel for each vocabulary, cap and recipe in which some depth has a curve."""
    curves: dict[FamilyKey, list[Curve]] = defaultdict(list)
    for curve in fits.curves:
        curves[question_of(curve.family.key)].append(curve)
    families = families_of(fits.cells)
    titles = told_apart(list(curves), labels)
    return tuple(
        SizePanel(
            title=titles[question],
            families=tuple(one for one in families if question_of(one.key) == question),
            curves=tuple(found),
            crossings=_shown([c for c in fits.crossings if question_of(c.shallow) == question]),
        )
        for question, found in sorted(curves.items(), key=lambda item: _order(item[0]))
    )


def _order(question: FamilyKey) -> tuple[object, ...]:
    """Large vocabularies and full tables first, then tighter and tighter caps."""
    caps = tuple(-getattr(question, name).inner for name in question.factorised)
    steps = question.attention_step, repr(question)
    return -question.input.vocab, question.data_hash, len(caps) > 0, caps, *steps


def size_figure(panels: Sequence[SizePanel]) -> Figure:
    """The figure of these panels, of which there is at least one."""
    shown = panels[:MOST_PANELS]
    left = len(panels) - len(shown)
    depths = sorted({depth for panel in shown for depth in panel.depths})
    said = [_said(panel, several=len(shown) > 1) for panel in shown]
    return Figure(
        name="loss-against-size",
        title="Loss against size, for each depth",
        caption="Points are runs, a point for each seed; lines are fitted curves and bands their "
        "90 % intervals. Size counts the weights of the blocks, 12 x depth x width². A diamond "
        "and a dotted rule mark where one depth overtakes another, with the 90 % interval below."
        + (f" {left} more panels are left out; the tables have them." if left else ""),
        description=f"Loss against block parameters for depths {', '.join(map(str, depths))}: "
        + " ".join(said),
        chart=partial(_chart, shown),
    )


def _shown(crossings: Sequence[Crossing]) -> tuple[Crossing, ...]:
    found = [one for one in crossings if one.is_crossing]
    if len(found) > MOST_CROSSINGS:
        found = [one for one in found if one.neighbours]
    return tuple(found)


def _said(panel: SizePanel, *, several: bool) -> str:
    where = f"{panel.title}: " if several else ""
    crossings = [
        f"depths {one.shallow.depth} and {one.deep.depth} cross at "
        f"{short_size(one.size.value or 0)}"
        for one in panel.crossings
    ]
    return f"{where}{', '.join(crossings) or 'no crossing in range'}."


def _chart(panels: Sequence[SizePanel], page: Layout) -> "Drawing":
    layout = page.for_panels(len(panels))
    names = [str(depth) for depth in sorted({d for panel in panels for d in panel.depths})]
    sizes = log_ends(c.size for p in panels for family in p.families for c in family.cells)
    is_one = len({panel.families[0].key.data_hash for panel in panels}) == 1
    together = ends(loss for panel in panels for loss in _losses(panel))
    return side_by_side(
        [
            _panel(panel, names, sizes, together if is_one else ends(_losses(panel)), layout)
            for panel in panels
        ],
        layout,
    )


def _losses(panel: SizePanel) -> list[float]:
    """All that the panel shows."""
    runs = [loss for family in panel.families for cell in family.cells for loss in cell.losses]
    bands = [row[end] for c in panel.curves for row in curve_rows(c) for end in ("low", "high")]
    return [*runs, *map(float, bands)]


def _panel(
    panel: SizePanel, names: Sequence[str], sizes: Ends, losses: Ends, layout: Layout
) -> "Drawing":
    x = log_x("size", "block parameters", sizes, layout)
    curves = [row for curve in panel.curves for row in curve_rows(curve)]
    crossings = [_crossing_row(one, panel, sizes) for one in panel.crossings]
    main = altair.layer(
        rows_of(curves)
        .mark_area(opacity=0.2, clip=True)
        .encode(
            x=x,
            y=linear_y("low", NATS, losses),
            y2="high:Q",
            color=in_series("depth", "depth", names, layout)["color"],
        ),
        rows_of(curves)
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=x, y=linear_y("loss", NATS, losses), **in_dashes("depth", "depth", names, layout)
        ),
        rows_of(crossings).mark_rule(strokeDash=[1, 3], color="#000000").encode(x=x),
        rows_of([row for family in panel.families for row in _runs(family)])
        .mark_point(size=34, filled=True, opacity=0.9)
        .encode(
            x=x,
            y=linear_y("loss", NATS, losses),
            **in_series("depth", "depth", names, layout),
            tooltip=["depth:N", "width:Q", "size:Q", "loss:Q", "run:Q"],
        ),
        rows_of(crossings)
        .mark_point(shape="diamond", size=120, filled=True, color="#000000", opacity=1)
        .encode(x=x, y=linear_y("loss", NATS, losses)),
        width=layout.width,
        height=230,
        title=altair.TitleParams(panel.title, fontSize=12),
    )
    if not crossings:
        return main
    return altair.vconcat(main, _strip(crossings, sizes, layout), spacing=4)


def _strip(crossings: Sequence[Row], sizes: Ends, layout: Layout) -> "Drawing":
    """The crossings below their panel, a row each."""
    x = log_x("size", "size at which they cross", sizes, layout)
    y = rows_y([str(row["row"]) for row in crossings])
    open_ends = [
        {"row": row["row"], "at": row[end], "shape": shape}
        for row in crossings
        for end, shape in (("low", "triangle-left"), ("high", "triangle-right"))
        if row[f"{end}_is_open"]
    ]
    strip: Drawing = altair.layer(
        rows_of(crossings)
        .mark_rule(strokeWidth=2)
        .encode(x=log_x("low", "size at which they cross", sizes, layout), x2="high:Q", y=y),
        rows_of(crossings)
        .mark_point(shape="diamond", size=90, filled=True, color="#000000", opacity=1)
        .encode(x=x, y=y, tooltip=["row:N", "size:Q", "low:Q", "high:Q"]),
        rows_of(open_ends)
        .mark_point(size=70, filled=True, color="#000000", opacity=1)
        .encode(
            x=log_x("at", "size at which they cross", sizes, layout),
            y=y,
            shape=altair.Shape("shape:N", scale=None, legend=None),
        ),
        width=layout.width,
        height=ROW * len(crossings),
    ).resolve_scale(shape="independent")
    return strip


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


def _runs(family: Family) -> list[Row]:
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


def _crossing_row(one: Crossing, panel: SizePanel, sizes: Ends) -> Row:
    """A crossing, its height on the curve of the shallow depth, and its interval in the frame."""
    import numpy as np

    size = one.size.value
    assert size is not None
    (shallow,) = [curve for curve in panel.curves if curve.family.key == one.shallow]
    return {
        "row": f"{one.shallow.depth} and {one.deep.depth}: {short_size(size)}",
        "size": size,
        "loss": float(shallow.mean(np.array([math.log(size)]))[0]),
        "low": sizes[0] if one.size.low is None else max(one.size.low, sizes[0]),
        "high": sizes[1] if one.size.high is None else min(one.size.high, sizes[1]),
        "low_is_open": one.size.low is None or one.size.low < sizes[0],
        "high_is_open": one.size.high is None or one.size.high > sizes[1],
    }
