"""Bounds on the separation rank over depth, and measured ranks beside them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

import altair

from archfit.exact.measure import Measurement
from archfit.exact.rank_claims import DEPTHS, growth_bounds
from archfit.report.charts import DEEPEST_BOUNDS
from archfit.report.charts.look import COLOURS, SHAPES, Row, rows_of
from archfit.theory.bounds import Shape, bounds_report, regime
from archfit.theory.quantities import WIDTH

MOST_DEPTHS = 32  # points on a curve
UPPER, LOWER, DISPUTED = (
    "best upper bound that holds",
    "best lower bound that holds",
    "papers' formula for deep networks (disputed)",
)


def bounds_over_depth(shape: Shape, *, columns: int = 2, width: int = 330) -> altair.FacetChart:
    """log3 of the bounds against depth, one panel for each of four widths around the shape's."""
    if shape.depth > DEEPEST_BOUNDS:
        raise ValueError(
            f"depth={shape.depth} is too deep for a chart over depth; use at most "
            f"{DEEPEST_BOUNDS} with it"
        )
    widths = _widths(shape)
    rows = [row for width in widths for row in _rows(shape, width)]
    layers = (_curves(is_narrow=columns == 1), _thresholds(), _threshold_labels(), _own_depth())
    chart: altair.FacetChart = (
        altair.layer(*layers, data=altair.InlineData(values=rows))
        .properties(width=width, height=220)
        .facet(
            facet=altair.Facet(
                "panel:N",
                title=None,
                sort=[_panel(width, shape) for width in widths],
                header=altair.Header(labelFontSize=13, labelFontWeight="bold"),
            ),
            columns=columns,
        )
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


def _widths(shape: Shape) -> list[int]:
    around = (shape.width // 4, shape.width // 2, shape.width, 2 * shape.width)
    return sorted({width for width in around if 2 <= width <= WIDTH.most} | {shape.width})


def _inputs(shape: Shape) -> str:
    """What all panels have in common; curves are for any number of positions."""
    parts = [f"{shape.heads} heads"]
    sizes = {"head_dim": shape.head_dim, "vocabulary": shape.vocab, "embedding rank": shape.rank}
    parts += [f"{name} {size}" for name, size in sizes.items() if size is not None]
    if shape.position_rank:
        parts.append(f"position rank {shape.position_rank}")
    return ", ".join(parts + ["residual"] * shape.residual)


def _panel(width: int, shape: Shape) -> str:
    return f"width {width}" + (" (yours)" if width == shape.width else "")


def _rows(shape: Shape, width: int) -> Iterator[Row]:
    """The points of the curves, and the rules, of one panel."""
    panel = _panel(width, shape)
    for depth in _depths(shape):
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
    yield {"panel": panel, "own": shape.depth}


def _depths(shape: Shape) -> list[int]:
    """Depths from 1 to well past the shape's and past the thresholds."""
    last_threshold = regime(shape.depth, max(_widths(shape))).corrected_threshold
    last = max(ceil(shape.depth * 1.3), ceil(last_threshold) + 3)
    step = max(1, last // MOST_DEPTHS)
    return list(range(1, last + 1, step))


def _curves(*, is_narrow: bool) -> altair.Chart:
    names = [UPPER, LOWER, DISPUTED]
    legend = altair.Legend(
        title=None,
        orient="bottom" if is_narrow else "top",
        direction="vertical" if is_narrow else "horizontal",
        labelLimit=400,
        symbolType="stroke",
        symbolSize=900,
    )
    curves: altair.Chart = (
        altair.Chart()
        .transform_filter("isValid(datum.curve)")
        .mark_line(strokeWidth=2, point=altair.OverlayMarkDef(size=14))
        .encode(
            x=altair.X("depth:Q", title="depth L (layers)"),
            y=altair.Y(
                "log3:Q",
                title="log3 of the separation rank",
                scale=altair.Scale(type="log", nice=False),
                axis=altair.Axis(values=[10.0**power for power in range(0, 49, 2)], format="~e"),
            ),
            strokeDash=altair.StrokeDash(
                "curve:N",
                scale=altair.Scale(domain=names, range=[[1, 0], [7, 3], [2, 3]]),
                legend=legend,
            ),
            color=altair.Color(
                "curve:N",
                scale=altair.Scale(domain=names, range=["#14365e", "#2f7fc1", "#b5541b"]),
                legend=legend,
            ),
        )
    )
    return curves


def _thresholds() -> altair.Chart:
    rules: altair.Chart = (
        altair.Chart()
        .transform_filter("isValid(datum.rule)")
        .mark_rule(color="#555555", strokeDash=[1, 3])
        .encode(x="rule:Q")
    )
    return rules


def _threshold_labels() -> altair.Chart:
    texts: altair.Chart = (
        altair.Chart()
        .transform_filter("isValid(datum.rule)")
        .mark_text(angle=270, align="left", dx=-214, dy=-6, fontSize=9, color="#333333")
        .encode(x="rule:Q", y=altair.value(0), text="label:N")
    )
    return texts


def _own_depth() -> altair.Chart:
    rule: altair.Chart = (
        altair.Chart()
        .transform_filter("isValid(datum.own)")
        .mark_rule(color="#000000")
        .encode(x="own:Q")
    )
    return rule


MARKS = (*SHAPES, "triangle-right")
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
    rows = [row for measurement in measured for row in _points(measurement)]
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


def _points(measured: Measurement) -> Iterator[Row]:
    """The measured rank, where there are positions enough."""
    network, partition = measured.experiment.network, measured.experiment.partition
    if len(partition.inside) + len(partition.outside) == 2 * network.width:
        yield {
            "width": network.width,
            "panel": _width_panel(network.width),
            "depth": network.depth,
            "log10": math.log10(measured.rank),
            "rank": f"{measured.rank:,}",
        }


def _by_width(rows: Sequence[Row], widths: Sequence[int]) -> altair.LayerChart | altair.FacetChart:
    bounds = [row for width in widths for row in _bounds(width) if row["line"] == next(iter(LINES))]
    colour = altair.Color(
        "width:N", scale=altair.Scale(domain=widths, range=COLOURS), legend=_width_legend()
    )
    x, y = _x(), _y("log10 of the rank", HIGHEST)
    points = rows_of(rows).encode(x=x, y=y, color=colour)
    return altair.layer(
        rows_of(bounds)
        .mark_line(strokeWidth=1, strokeDash=[4, 4], clip=True)
        .encode(x=x, y=y, color=colour),
        points.mark_line(strokeWidth=2),
        points.mark_point(size=70, filled=True, opacity=1).encode(
            shape=altair.Shape(
                "width:N", scale=altair.Scale(domain=widths, range=MARKS), legend=_width_legend()
            ),
            tooltip=["width:N", "depth:Q", "rank:N"],
        ),
        width=560,
        height=300,
    )


def _with_bounds(rows: Sequence[Row], widths: Sequence[int]) -> altair.FacetChart:
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
            facet=altair.Facet(
                "panel:N", title=None, sort=[_width_panel(width) for width in widths]
            ),
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
                    "panel": _width_panel(width),
                    "depth": depth,
                    "line": line,
                    "log10": math.log10(value),
                }


def _width_panel(width: int) -> str:
    return f"width {width}"


def _x() -> altair.X:
    return altair.X(
        "depth:Q",
        title="depth L (layers)",
        axis=altair.Axis(tickMinStep=1),
        scale=altair.Scale(domain=[DEPTHS[0] - 0.2, DEPTHS[-1] + 0.2], nice=False),
    )


def _y(title: str, highest: float) -> altair.Y:
    return altair.Y("log10:Q", title=title, scale=altair.Scale(domain=[0.0, highest], nice=False))


def _width_legend() -> altair.Legend:
    return altair.Legend(title="width", orient="right", symbolSize=90)
