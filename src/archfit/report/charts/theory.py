"""Bounds on the separation rank over depth, and measured ranks beside them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import altair

from archfit.exact.measure import Measurement
from archfit.exact.rank_claims import DEPTHS, growth_bounds
from archfit.report.charts import DEEPEST_BOUNDS, look
from archfit.report.charts.look import Panel, Row
from archfit.theory.bounds import Shape, bounds_report, regime
from archfit.theory.quantities import WIDTH

MOST_DEPTHS = 32  # points on a curve
UPPER, LOWER, DISPUTED = (
    "best upper bound that holds",
    "best lower bound that holds",
    "papers' formula for deep networks (disputed)",
)
CURVES = {UPPER: ([1, 0], "#14365e"), LOWER: ([7, 3], "#2f7fc1"), DISPUTED: ([2, 3], "#b5541b")}


def bounds_over_depth(shape: Shape, *, columns: int = 2, width: int = 330) -> altair.FacetChart:
    """log3 of the bounds against depth, one panel for each of four widths around the shape's."""
    if shape.depth > DEEPEST_BOUNDS:
        raise ValueError(
            f"depth={shape.depth} is too deep for a chart over depth; use at most "
            f"{DEEPEST_BOUNDS} with it"
        )
    around = (shape.width // 4, shape.width // 2, shape.width, 2 * shape.width)
    widths = sorted({width for width in around if 2 <= width <= WIDTH.most} | {shape.width})
    mine = {shape.width: " (yours)"}
    panels = {f"width {each}{mine.get(each, '')}": each for each in widths}
    depths = _depths(shape, widths[-1])
    rows = [row for panel, each in panels.items() for row in _rows(shape, each, depths, panel)]
    header = altair.Header(labelFontSize=13, labelFontWeight="bold")
    facet = altair.Facet("panel:N", title=None, sort=list(panels), header=header)
    layers = _bound_layers(is_narrow=columns == 1)
    chart: altair.FacetChart = (
        _faceted(layers, rows, facet, columns, width=width, height=220)
        .resolve_scale(x="shared", y="shared")
        .properties(
            title=altair.TitleParams(
                f"What depth can add: bounds on the separation rank, {_inputs(shape)}",
                subtitle=[
                    "Unmasked network with linear attention. Solid vertical rule: depth "
                    f"{shape.depth}. Dotted rules: log3(d) of the papers,",
                    "and 2 log3(d) + log3(2), up to where the proved upper bound grows doubly "
                    "exponentially.",
                ],
                anchor="start",
            ),
            description=f"Lower and upper bounds over depth for widths {widths}",
        )
    )
    return chart


def _depths(shape: Shape, widest: int) -> list[int]:
    """Depths from 1 to well past the shape's and past the thresholds."""
    last_threshold = regime(shape.depth, widest).corrected_threshold
    last = max(math.ceil(shape.depth * 1.3), math.ceil(last_threshold) + 3)
    return list(range(1, last + 1, max(1, last // MOST_DEPTHS)))


def _inputs(shape: Shape) -> str:
    """What all panels have in common; curves are for any number of positions."""
    parts = [f"{shape.heads} heads"]
    sizes = {"head_dim": shape.head_dim, "vocabulary": shape.vocab, "embedding rank": shape.rank}
    parts += [f"{name} {size}" for name, size in sizes.items() if size is not None]
    if shape.position_rank:
        parts.append(f"position rank {shape.position_rank}")
    return ", ".join(parts + ["residual"] * shape.residual)


def _rows(shape: Shape, width: int, depths: Sequence[int], panel: str) -> Iterator[Row]:
    """The points of the curves, and the rules, of one panel."""
    for depth in depths:
        at = replace(shape, depth=depth, width=width, heads=min(shape.heads, width), positions=None)
        report = bounds_report(at, witness_tries=1)
        formula = min(b.log3 for b in report.bounds if b.status == "disputed")
        values = {UPPER: report.upper.log3, LOWER: report.lower.log3, DISPUTED: formula}
        for curve, log3 in values.items():
            if log3 > 0:  # the axis is logarithmic
                yield {"panel": panel, "depth": depth, "log3": float(log3), "curve": curve}
    where = regime(shape.depth, replace(shape, width=width, heads=1).embedding_rank)
    yield {"panel": panel, "rule": float(where.paper_threshold), "label": "log3(d)"}
    corrected = float(where.corrected_threshold)
    yield {"panel": panel, "rule": corrected, "label": "2 log3(d) + log3(2)"}
    yield {"panel": panel, "chosen": shape.depth}


def _bound_layers(*, is_narrow: bool) -> list[altair.Chart]:
    """The curves, the thresholds with their names, and the depth of the shape."""
    side, direction = ("bottom", "vertical") if is_narrow else ("top", "horizontal")
    legend = _line_legend(orient=side, direction=direction, labelLimit=400)
    powers = altair.Axis(values=[10.0**power for power in range(0, 49, 2)], format="~e")
    scale = altair.Scale(type="log", nice=False)
    y = altair.Y("log3:Q", title="log3 of the separation rank", scale=scale, axis=powers)
    return [
        _where("isValid(datum.curve)")
        .mark_line(strokeWidth=2, point=altair.OverlayMarkDef(size=14))
        .encode(
            x=altair.X("depth:Q", title="depth L (layers)"), y=y, **_lined("curve", CURVES, legend)
        ),
        _where("isValid(datum.rule)")
        .mark_rule(color="#555555", strokeDash=[1, 3])
        .encode(x="rule:Q"),
        _where("isValid(datum.rule)")
        .mark_text(angle=270, align="left", dx=-214, dy=-6, fontSize=9, color="#333333")
        .encode(x="rule:Q", y=altair.value(0), text="label:N"),
        _where("isValid(datum.chosen)").mark_rule(color="#000000").encode(x="chosen:Q"),
    ]


def _where(condition: str) -> altair.Chart:
    """A layer of the rows of a facet that meet a condition."""
    return altair.Chart().transform_filter(condition)


def _line_legend(**look: Any) -> altair.Legend:
    return altair.Legend(title=None, symbolType="stroke", symbolSize=900, **look)


def _lined(
    field: str, lines: dict[str, tuple[list[int], str]], legend: altair.Legend
) -> dict[str, Any]:
    """Dash and colour of curves by their name."""
    dashes, colours = zip(*lines.values(), strict=True)
    return look.series_channels(field, list(lines), legend, strokeDash=dashes, color=colours)


def _faceted(
    layers: Sequence[altair.Chart], rows: list[Row], facet: altair.Facet, columns: int, **size: int
) -> altair.FacetChart:
    """The layers in one panel for each name of the facet."""
    panel = altair.layer(*layers, data=altair.InlineData(values=rows)).properties(**size)
    return panel.facet(facet=facet, columns=columns)


MARKS = (*look.SHAPES, "triangle-right")
LINES = {
    "ub_stat_N (proved)": ([1, 0], "#14365e"),
    "ub_thm1 (papers, proved)": ([2, 2], "#2f7fc1"),
    "ub_thm2 (papers, disputed)": ([8, 3, 2, 3], "#b5541b"),
    "lb_strong (proved)": ([7, 4], "#2e7d4f"),
    "lb (papers, proved)": ([1, 4], "#777777"),
}
PANELS = 4  # widths that are shown with all bounds
HIGHEST, HIGHEST_BOUND = 8.0, 16.0  # log10, where curves leave the panels


def growth_chart(measured: Sequence[Measurement]) -> altair.VConcatChart:
    """log10 of the rank against depth: one line a width, then the bounds, a panel a width."""
    rows = [row for measurement in measured for row in _measured_rows(measurement)]
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


def _measured_rows(measured: Measurement) -> Iterator[Row]:
    """The measured rank, where there are positions enough."""
    network, partition = measured.experiment.network, measured.experiment.partition
    if len(partition.inside) + len(partition.outside) == 2 * network.width:
        rank: Row = {"rank": f"{measured.rank:,}"}
        yield _growth_row(network.width, network.depth, measured.rank) | rank


def _bound_rows(width: int) -> Iterator[Row]:
    """The points of all bounds of a width; a bound below one says nothing."""
    for depth in DEPTHS:
        at = growth_bounds(depth, width, 2 * width)
        values = (at.statistics, at.every_depth, at.deep, at.strong_lower, at.lower)
        for line, value in zip(LINES, values, strict=True):
            if value is not None and value >= 1:
                yield _growth_row(width, depth, value) | {"line": line}


def _growth_row(width: int, depth: int, rank: int | Fraction) -> Row:
    return {"width": width, "panel": f"width {width}", "depth": depth, "log10": math.log10(rank)}


def _growth_axes(title: str, highest: float) -> dict[str, Any]:
    depths = altair.Scale(domain=[DEPTHS[0] - 0.2, DEPTHS[-1] + 0.2], nice=False)
    ranks = altair.Scale(domain=[0.0, highest], nice=False)
    ticks = altair.Axis(tickMinStep=1)
    return {
        "x": altair.X("depth:Q", title="depth L (layers)", axis=ticks, scale=depths),
        "y": altair.Y("log10:Q", title=title, scale=ranks),
    }


def _by_width(rows: list[Row], widths: Sequence[int]) -> Panel:
    proved = next(iter(LINES))
    bounds = [row for width in widths for row in _bound_rows(width) if row["line"] == proved]
    legend = altair.Legend(title="width", orient="right", symbolSize=90)
    series = look.series_channels("width", widths, legend, color=look.COLOURS, shape=MARKS)
    points = _growth_axes("log10 of the rank", HIGHEST) | series
    lines = {channel: points[channel] for channel in ("x", "y", "color")}
    told = ["width:N", "depth:Q", "rank:N"]
    return altair.layer(
        look.rows_of(bounds).mark_line(strokeWidth=1, strokeDash=[4, 4], clip=True).encode(**lines),
        look.rows_of(rows).mark_line(strokeWidth=2).encode(**lines),
        look.rows_of(rows)
        .mark_point(filled=True, opacity=1, size=70)
        .encode(**points, tooltip=told),
        width=560,
        height=300,
    )


def _with_bounds(rows: Sequence[Row], widths: Sequence[int]) -> altair.FacetChart:
    legend = _line_legend(orient="bottom", labelLimit=300, columns=3)
    bounds = [row for width in widths for row in _bound_rows(width)]
    marks = [row | {"line": "measured"} for row in rows if row["width"] in widths]
    axes = _growth_axes("log10", HIGHEST_BOUND)
    lines = (
        _where("datum.line != 'measured'")
        .mark_line(strokeWidth=2, clip=True)
        .encode(**axes, **_lined("line", LINES, legend))
    )
    measured = (
        _where("datum.line == 'measured'")
        .mark_point(size=45, filled=True, color="#000000", opacity=1)
        .encode(**axes)
    )
    facet = altair.Facet("panel:N", title=None, sort=[f"width {width}" for width in widths])
    return _faceted((lines, measured), bounds + marks, facet, columns=2, width=250, height=190)
