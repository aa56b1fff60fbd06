"""Measured separation ranks over depth and width, beside their bounds."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from archfit.exact.growth import DEPTHS, growth_bounds
from archfit.exact.measure import Measurement

if TYPE_CHECKING:
    import altair

Row = dict[str, str | float]

COLOURS = ("#14365e", "#b5241b", "#2e7d4f", "#6a3d9a", "#d08a2e", "#2f7fc1", "#555555")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
LINES = {
    "ub_stat_N (proved)": ([1, 0], "#14365e"),
    "ub_thm1 (papers, proved)": ([2, 2], "#2f7fc1"),
    "ub_thm2 (papers, disputed)": ([8, 3, 2, 3], "#b5541b"),
    "lb_strong (proved)": ([7, 4], "#2e7d4f"),
    "lb (papers, proved)": ([1, 4], "#777777"),
}
PANELS = 4  # widths that are shown with all bounds
HIGHEST, HIGHEST_BOUND = 8.0, 16.0  # log10, where curves leave the panels


def growth_chart(measured: Sequence[Measurement]) -> "altair.VConcatChart":
    """log10 of the rank against depth: one line a width, then the bounds, a panel a width."""
    import altair

    rows = [row for one in measured for row in _points(one)]
    widths = sorted({int(row["width"]) for row in rows})
    chart: altair.VConcatChart = (
        altair.vconcat(
            _by_width(rows, widths),
            _with_bounds(rows, widths[:PANELS]),
            title=altair.TitleParams(
                "Separation rank, measured exactly",
                subtitle=[
                    "Unmasked network with linear attention, one head, balanced partition of "
                    "2 x width positions.",
                    "Marks are measured; dashed lines go on where only the proved upper bound "
                    "(ub_stat_N) is known.",
                ],
                anchor="start",
                fontSize=16,
            ),
        )
        .resolve_scale(color="independent", strokeDash="independent", shape="independent")
        .properties(description=f"{len(rows)} measured separation ranks over depth")
    )
    return chart


def _points(one: Measurement) -> Iterator[Row]:
    """The measured rank, where there are positions enough."""
    network, partition = one.experiment.network, one.experiment.partition
    if len(partition.inside) + len(partition.outside) == 2 * network.width:
        yield {
            "width": network.width,
            "panel": _panel(network.width),
            "depth": network.depth,
            "log10": math.log10(one.rank),
            "rank": f"{one.rank:,}",
        }


def _by_width(
    rows: Sequence[Row], widths: Sequence[int]
) -> "altair.LayerChart | altair.FacetChart":
    import altair

    bounds = [row for width in widths for row in _bounds(width) if row["line"] == next(iter(LINES))]
    colour = altair.Color(
        "width:N", scale=altair.Scale(domain=widths, range=COLOURS), legend=_width_legend()
    )
    x, y = _x(), _y("log10 of the rank", HIGHEST)
    points = altair.Chart(altair.InlineData(values=list(rows))).encode(x=x, y=y, color=colour)
    return altair.layer(
        altair.Chart(altair.InlineData(values=bounds))
        .mark_line(strokeWidth=1, strokeDash=[4, 4], clip=True)
        .encode(x=x, y=y, color=colour),
        points.mark_line(strokeWidth=2),
        points.mark_point(size=70, filled=True, opacity=1).encode(
            shape=altair.Shape(
                "width:N", scale=altair.Scale(domain=widths, range=SHAPES), legend=_width_legend()
            ),
            tooltip=["width:N", "depth:Q", "rank:N"],
        ),
        width=560,
        height=300,
    )


def _with_bounds(rows: Sequence[Row], widths: Sequence[int]) -> "altair.FacetChart":
    import altair

    legend = altair.Legend(
        title=None, orient="bottom", labelLimit=300, symbolType="stroke", symbolSize=900, columns=3
    )
    names, looks = list(LINES), LINES.values()
    bounds = [row for width in widths for row in _bounds(width)]
    marks = [row | {"line": "measured"} for row in rows if row["width"] in widths]
    base = altair.Chart()
    x, y = _x(), _y("log10", HIGHEST_BOUND)
    lines = (
        base.transform_filter("datum.line != 'measured'")
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=x,
            y=y,
            strokeDash=altair.StrokeDash(
                "line:N",
                scale=altair.Scale(domain=names, range=[dash for dash, _ in looks]),
                legend=legend,
            ),
            color=altair.Color(
                "line:N",
                scale=altair.Scale(domain=names, range=[colour for _, colour in looks]),
                legend=legend,
            ),
        )
    )
    measured = (
        base.transform_filter("datum.line == 'measured'")
        .mark_point(size=45, filled=True, color="#000000", opacity=1)
        .encode(x=x, y=y)
    )
    facets: altair.FacetChart = (
        altair.layer(lines, measured, data=altair.InlineData(values=bounds + marks))
        .properties(width=250, height=190)
        .facet(
            facet=altair.Facet("panel:N", title=None, sort=[_panel(width) for width in widths]),
            columns=2,
        )
    )
    return facets


def _bounds(width: int) -> Iterator[Row]:
    """The points of all bounds of a width; a bound below one says nothing."""
    for depth in DEPTHS:
        at = growth_bounds(depth, width, 2 * width)
        values = (at.statistics, at.every_depth, at.deep, at.strong_lower, at.lower)
        for line, value in zip(LINES, values, strict=True):
            if value is not None and value >= 1:
                yield {
                    "width": width,
                    "panel": _panel(width),
                    "depth": depth,
                    "line": line,
                    "log10": math.log10(value),
                }


def _panel(width: int) -> str:
    return f"width {width}"


def _x() -> "altair.X":
    import altair

    return altair.X(
        "depth:Q",
        title="depth L (layers)",
        axis=altair.Axis(tickMinStep=1),
        scale=altair.Scale(domain=[DEPTHS[0] - 0.2, DEPTHS[-1] + 0.2], nice=False),
    )


def _y(title: str, highest: float) -> "altair.Y":
    import altair

    return altair.Y("log10:Q", title=title, scale=altair.Scale(domain=[0.0, highest], nice=False))


def _width_legend() -> "altair.Legend":
    import altair

    return altair.Legend(title="width", orient="right", symbolSize=90)
