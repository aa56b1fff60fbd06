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
from archfit.report.charts.look import Ends, Frame, Row, Rows
from archfit.report.document import Layout, written
from archfit.spec.errors import refuse_if
from archfit.theory.bounds import bounds_report, regime
from archfit.theory.inputs import WIDTH
from archfit.theory.shape import Shape

MOST_DEPTHS = 32  # points on a curve
UPPER, LOWER, DISPUTED = written("charts")["bounds"]["series"]["names"]
UNMASKED = "best upper bound without the mask"  # in its place under a mask
LINES: list[str] = written("charts")["growth-bounds"]["series"]["names"]


def bounds_over_depth(shape: Shape, page: Layout) -> altair.ConcatChart:
    """log3 of the bounds against depth, one panel for each of four widths around the shape's."""
    is_too_deep = shape.depth > DEEPEST_BOUNDS
    refuse_if(is_too_deep, "deep-chart", depth=shape.depth, most=DEEPEST_BOUNDS)
    around = (shape.width // 4, shape.width // 2, shape.width, 2 * shape.width)
    widths = sorted({width for width in around if 2 <= width <= WIDTH.most} | {shape.width})
    # Depths from 1 to well past the shape's and past where bounds bend.
    bend = regime(_at(shape, widths[-1], shape.depth)).corrected_threshold
    last = max(math.ceil(shape.depth * 1.3), math.ceil(bend) + 3)
    depths = range(1, last + 1, max(1, last // MOST_DEPTHS))
    layout = replace(page, width=min(330, page.width))
    names = [UPPER, LOWER, UNMASKED if shape.causal else DISPUTED]
    panels = []
    for width in widths:
        rows = _rows(shape, width, depths)
        title = f"width {width}" + " (yours)" * (width == shape.width)
        panels.append(look.panel("bounds", rows, Frame(), layout, names, title))
    network = "Causal" if shape.causal else "Unmasked"
    heading = look.heading("bounds", inputs=_inputs(shape), network=network, depth=shape.depth)
    described = f"Lower and upper bounds over depth for widths {widths}"
    chart = look.side_by_side(panels, layout).properties(title=heading, description=described)
    on_one_scale: altair.ConcatChart = chart.resolve_scale(x="shared", y="shared")
    return on_one_scale


def _at(shape: Shape, width: int, depth: int) -> Shape:
    """The shape at another width and depth; for any length where its partition allows that."""
    positions = shape.positions if shape.partition == "interleaved" else None
    heads = min(shape.heads, width)
    return replace(shape, depth=depth, width=width, heads=heads, positions=positions)


def _inputs(shape: Shape) -> str:
    """What all panels have in common; curves are for any number of positions."""
    parts = [f"{shape.heads} heads"]
    sizes = {"head_dim": shape.head_dim, "vocabulary": shape.vocab, "embedding rank": shape.rank}
    parts += [f"{name} {size}" for name, size in sizes.items() if size is not None]
    if shape.position_rank:
        parts.append(f"position rank {shape.position_rank}")
    return ", ".join(parts + ["residual"] * shape.residual)


def _rows(shape: Shape, width: int, depths: Sequence[int]) -> dict[str, Rows]:
    """The points of the curves, and the rules, of one panel."""
    curves: list[Row] = []
    for depth in depths:
        at = _at(shape, width, depth)
        report = bounds_report(at, witness_tries=1)
        values = {UPPER: report.upper.log3, LOWER: report.lower.log3}
        if shape.causal:
            unmasked = replace(at, causal=False, partition="prefix")
            values[UNMASKED] = bounds_report(unmasked, witness_tries=1).upper.log3
        else:
            values[DISPUTED] = min(b.log3 for b in report.bounds if b.status == "disputed")
        curves += [  # the axis is logarithmic
            {"depth": depth, "log3": float(log3), "curve": curve}
            for curve, log3 in values.items()
            if log3 > 0
        ]
    where = regime(_at(shape, width, shape.depth))
    label = "log3(4 m_0)" if shape.causal else "2 log3(d) + log3(2)"
    rules = {"log3(d)": where.paper_threshold, label: where.corrected_threshold}
    drawn = [{"depth": float(depth), "label": label} for label, depth in rules.items()]
    return {"curves": curves, "rules": drawn, "chosen": [{"depth": shape.depth}]}


PANELS = 4  # widths that are shown with all bounds
HIGHEST, HIGHEST_BOUND = 8.0, 16.0  # log10, where curves leave the panels


def growth_chart(measured: Sequence[Measurement], page: Layout) -> altair.VConcatChart:
    """log10 of the rank against depth: one line a width, then the bounds, a panel a width."""
    rows: list[dict[str, Any]] = []
    for each in measured:
        network, partition = each.experiment, each.experiment.partition
        if len(partition.inside) + len(partition.outside) == 2 * network.width:  # else too few
            row = _growth_row(network.width, network.depth, each.rank)
            rows.append(row | {"rank": f"{each.rank:,}"})
    widths = sorted({int(row["width"]) for row in rows})
    bounds = {width: list(_bound_rows(width)) for width in widths}
    proved = [row for some in bounds.values() for row in some if row["line"] == LINES[0]]
    depths = Ends(DEPTHS[0] - 0.2, DEPTHS[-1] + 0.2)
    frame, drawn = Frame(depths, Ends(0.0, HIGHEST)), dict[str, Rows](bounds=proved, measured=rows)
    by_width = look.panel("growth", drawn, frame, page, widths)
    frame, layout = Frame(depths, Ends(0.0, HIGHEST_BOUND)), replace(page, width=250)
    panels = []
    for width in widths[:PANELS]:
        own = [row for row in rows if row["width"] == width]
        drawn, title = {"bounds": bounds[width], "measured": own}, f"width {width}"
        panels.append(look.panel("growth-bounds", drawn, frame, layout, LINES, title))
    with_bounds = look.side_by_side(panels, layout)
    chart: altair.VConcatChart = (
        altair.vconcat(by_width, with_bounds, title=look.heading("growth"))
        .resolve_scale(color="independent", strokeDash="independent", shape="independent")
        .properties(description=f"{len(rows)} measured separation ranks over depth")
    )
    return chart


def _bound_rows(width: int) -> Iterator[Row]:
    """The points of all bounds of a width; a bound below one says nothing."""
    for depth in DEPTHS:
        at = growth_bounds(depth, width, 2 * width)
        names = ("ub_stat_N", "ub_thm1", "ub_thm2", "lb_strong", "lb")
        for line, name in zip(LINES, names, strict=True):
            value = at[name]
            if value is not None and value >= 1:
                yield _growth_row(width, depth, value) | {"line": line}


def _growth_row(width: int, depth: int, rank: int | Fraction) -> dict[str, object]:
    return {"width": width, "depth": depth, "log10": math.log10(rank)}
