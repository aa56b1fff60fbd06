"""Measured separation ranks over depth and width, beside their bounds."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from archfit.exact.growth import Bounds, growth_bounds
from archfit.exact.measure import Measurement

if TYPE_CHECKING:
    import altair

Row = dict[str, str | float]

COLOURS = ("#14365e", "#b5241b", "#2e7d4f", "#6a3d9a", "#d08a2e", "#2f7fc1", "#555555")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
MEASURED = "measured"
LINES = {
    MEASURED: ([1, 0], "#000000"),
    "ub_stat_N (proved)": ([8, 3], "#14365e"),
    "ub_thm1 (papers, proved)": ([2, 2], "#2f7fc1"),
    "ub_thm2 (papers, disputed)": ([6, 2, 1, 2], "#b5541b"),
    "lb_strong (proved)": ([4, 4], "#2e7d4f"),
    "lb (papers, proved)": ([1, 4], "#777777"),
}
PANELS = 4  # widths that are shown with all bounds
HIGHEST = 16.0  # log10, beyond which bounds leave the panels


def growth_chart(measured: Sequence[Measurement]) -> "altair.VConcatChart":
    """log10 of the rank against depth: one line a width, then the bounds, a panel a width."""
    import altair

    saturated = [one for one in measured if _positions(one) == 2 * one.experiment.network.width]
    chart: altair.VConcatChart = altair.vconcat(
        _by_width(saturated),
        _with_bounds(saturated),
        title=altair.TitleParams(
            "Separation rank, measured exactly",
            subtitle="Unmasked network with linear attention, one head, balanced partition of "
            "2 x width positions.",
            anchor="start",
            fontSize=16,
        ),
    ).resolve_scale(color="independent", strokeDash="independent", shape="independent")
    return chart.properties(description=f"{len(saturated)} measured separation ranks over depth")


def _by_width(measured: Sequence[Measurement]) -> "altair.LayerChart | altair.FacetChart":
    import altair

    rows = [
        {
            "depth": one.experiment.network.depth,
            "rank": math.log10(one.rank),
            "width": str(one.experiment.network.width),
            "label": f"{one.rank:,}",
        }
        for one in measured
    ]
    widths = sorted({str(row["width"]) for row in rows}, key=int)
    legend = altair.Legend(title="width", orient="right", symbolSize=90)
    base = altair.Chart(altair.InlineData(values=rows)).encode(
        x=altair.X("depth:Q", title="depth L (layers)", axis=altair.Axis(tickMinStep=1)),
        y=altair.Y("rank:Q", title="log10 of the rank"),
    )
    colour = altair.Color(
        "width:N", scale=altair.Scale(domain=widths, range=COLOURS), legend=legend
    )
    return altair.layer(
        base.mark_line(strokeWidth=1.5).encode(color=colour),
        base.mark_point(size=70, filled=True, opacity=1).encode(
            color=colour,
            shape=altair.Shape(
                "width:N", scale=altair.Scale(domain=widths, range=SHAPES), legend=legend
            ),
            tooltip=["width:N", "depth:Q", "label:N"],
        ),
        width=560,
        height=280,
        title="One line a width",
    )


def _with_bounds(measured: Sequence[Measurement]) -> "altair.FacetChart":
    import altair

    widths = sorted({one.experiment.network.width for one in measured})[:PANELS]
    rows = [row for one in measured for row in _lines(one) if row["width"] in widths]
    legend = altair.Legend(
        title=None, orient="bottom", labelLimit=300, symbolType="stroke", symbolSize=900, columns=3
    )
    names = list(LINES)
    lines: altair.Chart = (
        altair.Chart(altair.InlineData(values=rows))
        .mark_line(strokeWidth=2, clip=True, point=altair.OverlayMarkDef(size=25))
        .encode(
            x=altair.X("depth:Q", title="depth L", axis=altair.Axis(tickMinStep=1)),
            y=altair.Y(
                "log10:Q", title="log10", scale=altair.Scale(domain=[0.0, HIGHEST], clamp=False)
            ),
            strokeDash=altair.StrokeDash(
                "line:N",
                scale=altair.Scale(domain=names, range=[dash for dash, _ in LINES.values()]),
                legend=legend,
            ),
            color=altair.Color(
                "line:N",
                scale=altair.Scale(domain=names, range=[colour for _, colour in LINES.values()]),
                legend=legend,
            ),
        )
    )
    facets: altair.FacetChart = lines.properties(width=250, height=190).facet(
        facet=altair.Facet("panel:N", title=None, sort=[f"width {width}" for width in widths]),
        columns=2,
    )
    return facets


def _lines(one: Measurement) -> Iterator[Row]:
    network = one.experiment.network
    bounds = growth_bounds(network.depth, network.width, _positions(one))
    for line, value in (MEASURED, float(one.rank)), *_bound_values(bounds):
        if value >= 1:
            yield {
                "panel": f"width {network.width}",
                "width": network.width,
                "depth": network.depth,
                "line": line,
                "log10": math.log10(value),
            }


def _bound_values(bounds: Bounds) -> Iterator[tuple[str, float]]:
    values = (bounds.statistics, bounds.every_depth, bounds.deep, bounds.strong_lower, bounds.lower)
    for line, value in zip(list(LINES)[1:], values, strict=True):
        if value is not None:
            yield line, float(value)


def _positions(one: Measurement) -> int:
    return len(one.experiment.partition.inside) + len(one.experiment.partition.outside)
