"""Bounds on the separation rank over depth, and measured ranks beside them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import altair

from archfit.exact.measure import Measurement
from archfit.exact.rank_claims import DEPTHS, growth_bounds
from archfit.report.charts import DEEPEST_BOUNDS, look
from archfit.report.charts.look import Ends, Frame, Row
from archfit.report.document import WIDE, Layout, written
from archfit.theory.arithmetic import WIDTH
from archfit.theory.bounds import bounds_report, regime
from archfit.theory.shape import Shape

MOST_DEPTHS = 32  # points on a curve
UPPER, LOWER, DISPUTED = written("charts")["bounds"]["series"]["names"]
UNMASKED = "best upper bound without the mask"  # in its place under a mask
LINES: list[str] = written("charts")["growth-bounds"]["series"]["names"]


def bounds_over_depth(shape: Shape, page: Layout) -> altair.FacetChart:
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
    # Depths from 1 to well past the shape's and past where bounds bend.
    bend = regime(_at(shape, widths[-1], shape.depth)).corrected_threshold
    last = max(math.ceil(shape.depth * 1.3), math.ceil(bend) + 3)
    depths = range(1, last + 1, max(1, last // MOST_DEPTHS))
    rows = [row for panel, each in panels.items() for row in _rows(shape, each, depths, panel)]
    layout = replace(page, width=min(330, page.width))
    network = "Causal" if shape.causal else "Unmasked"
    title = look.heading("bounds", inputs=_inputs(shape), network=network, depth=shape.depth)
    said = f"Lower and upper bounds over depth for widths {widths}"
    compared = UNMASKED if shape.causal else DISPUTED
    facets = look.facets("bounds", rows, Frame(), layout, list(panels), [UPPER, LOWER, compared])
    chart: altair.FacetChart = facets.resolve_scale(x="shared", y="shared").properties(
        title=title, description=said
    )
    return chart


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


def _rows(shape: Shape, width: int, depths: Sequence[int], panel: str) -> Iterator[Row]:
    """The points of the curves, and the rules, of one panel."""
    for depth in depths:
        at = _at(shape, width, depth)
        report = bounds_report(at, witness_tries=1)
        values = {UPPER: report.upper.log3, LOWER: report.lower.log3}
        if shape.causal:
            unmasked = replace(at, causal=False, partition="prefix")
            values[UNMASKED] = bounds_report(unmasked, witness_tries=1).upper.log3
        else:
            values[DISPUTED] = min(b.log3 for b in report.bounds if b.status == "disputed")
        for curve, log3 in values.items():
            if log3 > 0:  # the axis is logarithmic
                yield {"panel": panel, "depth": depth, "log3": float(log3), "curve": curve}
    where = regime(_at(shape, width, shape.depth))
    yield {"panel": panel, "rule": float(where.paper_threshold), "label": "log3(d)"}
    label = "log3(4 m_0)" if shape.causal else "2 log3(d) + log3(2)"
    yield {"panel": panel, "rule": float(where.corrected_threshold), "label": label}
    yield {"panel": panel, "chosen": shape.depth}


PANELS = 4  # widths that are shown with all bounds
HIGHEST, HIGHEST_BOUND = 8.0, 16.0  # log10, where curves leave the panels


def growth_chart(measured: Sequence[Measurement]) -> altair.VConcatChart:
    """log10 of the rank against depth: one line a width, then the bounds, a panel a width."""
    rows: list[Row] = []
    for each in measured:
        network, partition = each.experiment, each.experiment.partition
        if len(partition.inside) + len(partition.outside) == 2 * network.width:  # else too few
            row = _growth_row(network.width, network.depth, each.rank)
            rows.append(row | {"rank": f"{each.rank:,}"})
    widths = sorted({int(row["width"]) for row in rows})
    bounds = {width: list(_bound_rows(width)) for width in widths}
    proved = [row for some in bounds.values() for row in some if row["line"] == LINES[0]]
    depths = Ends(DEPTHS[0] - 0.2, DEPTHS[-1] + 0.2)
    drawn, frame = {"bounds": proved, "measured": rows}, Frame(depths, Ends(0.0, HIGHEST))
    by_width = look.panel("growth", drawn, frame, WIDE, widths)
    shown = widths[:PANELS]
    marks = [row | {"line": "measured"} for row in rows if row["width"] in shown]
    with_bounds = look.facets(
        "growth-bounds",
        [*(row for width in shown for row in bounds[width]), *marks],
        Frame(depths, Ends(0.0, HIGHEST_BOUND)),
        replace(WIDE, width=250),
        [f"width {width}" for width in shown],
    )
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


def _growth_row(width: int, depth: int, rank: int | Fraction) -> Row:
    return {"width": width, "panel": f"width {width}", "depth": depth, "log10": math.log10(rank)}
