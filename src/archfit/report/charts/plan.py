"""What each depth of a plan's size is expected to lose, and what a ladder measured."""

import math
from collections.abc import Sequence

import altair

from archfit.advise.ladder import LadderRun
from archfit.advise.planner import Plan
from archfit.fit.atlas import size_words
from archfit.report.charts import look
from archfit.report.charts.look import Axes, Panel, Row, layered, log_scale, series_channels
from archfit.report.document import Layout

WIDTH, NARROW_WIDTH, HEIGHT = 620, 270, 330  # pixels
MARKS = ("recommended", "adviser, in its range", "adviser, outside it")
SHAPES = ("diamond", "circle", "circle")
COLOURS = ("#b5241b", "#14365e", "#8aa9c9")
HIGHEST = 4.0  # of the expected loss of the recommended depth and 0.01, that the axis shows


def depth_chart(plan: Plan, *, is_narrow: bool = False) -> Panel:
    """Expected loss over depth; names are in tooltips."""
    outlook = plan.best.outlook
    scale = plan.regret.expected / outlook.expected_regret if outlook.expected_regret else 1.0
    curve: list[Row] = [{"depth": d, "lost": scale * lost} for d, lost in outlook.regrets]
    most = HIGHEST * (plan.regret.expected + 0.01)
    depths = outlook.regrets[0][0], max(2.0, outlook.regrets[-1][0])
    axes = Axes(
        altair.X("depth:Q", title="depth (layers)", scale=log_scale(*depths)),
        altair.Y(
            "lost:Q",
            title=f"expected loss against the best ({plan.regret.unit})",
            scale=altair.Scale(domain=(0, most), clamp=True),
        ),
    )
    low, high = plan.depth_range
    band = look.rows_of([{"low": low / 1.02, "high": high * 1.02}]).mark_rect(
        color="#dfe8f2", opacity=0.7
    )
    legend = altair.Legend(title=None, orient="bottom", columns=1 if is_narrow else 3)
    marks = series_channels("mark", MARKS, legend, shape=SHAPES, color=COLOURS)
    points = _points(plan, curve)
    return layered(
        band.encode(x=altair.X("low:Q", scale=log_scale(*depths)), x2="high:Q"),
        axes.lines(curve, {}, color="#333333"),
        axes.points(points[::-1], marks, "name:N depth:Q lost:Q", size=90),  # ours on top
        size=(NARROW_WIDTH if is_narrow else WIDTH, HEIGHT),
        title=f"Depths of {plan.params.total:,} parameters",
    )


def _points(plan: Plan, curve: list[Row]) -> list[Row]:
    """Ours, and every adviser whose depth was looked at."""
    named = [("archfit", float(plan.shape.depth), MARKS[0])] + [
        (advice.name, advice.depth, MARKS[1] if advice.in_range else MARKS[2])
        for advice in plan.advice
        if advice.depth is not None
    ]
    ends = float(curve[0]["depth"]), float(curve[-1]["depth"])

    def lost(depth: float) -> float:
        nearest = min(curve, key=lambda row: abs(math.log(float(row["depth"]) / depth)))
        return float(nearest["lost"])

    return [
        {"name": name, "depth": depth, "lost": lost(depth), "mark": mark}
        for name, depth, mark in named
        if ends[0] / 1.1 <= depth <= ends[1] * 1.1
    ]


def ladder_chart(runs: Sequence[LadderRun], sizes: Sequence[int], layout: Layout) -> Panel:
    """Bits per byte over depth, a line a size; seeds are their mean."""
    losses: dict[tuple[int, int], list[float]] = {}
    for run in runs:
        losses.setdefault((run.size, run.depth), []).append(run.bits)
    rows: list[Row] = [
        {"size": size_words(size), "depth": float(depth), "bits": sum(some) / len(some)}
        for (size, depth), some in sorted(losses.items())
    ]
    names = [size_words(size) for size in sizes]
    page = layout.for_panels(1)
    axes = Axes(
        look.log_x_at("depth", "depth (layers)", sorted({float(r["depth"]) for r in rows})),
        look.linear_y("bits", "bits per byte", look.ends(look.numbers(rows, "bits")), ".2f"),
    )
    series = look.in_series("size", "parameters", names, page)
    return layered(
        axes.lines(rows, series),
        axes.points(rows, series, "size:N depth:Q bits:Q"),
        size=(page.width, HEIGHT),
    )
