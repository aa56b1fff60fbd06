"""The figures of the atlas: loss over depth, best depths over size, vocabularies and ranks."""

from collections.abc import Mapping, Sequence
from functools import partial

import altair

from archfit.fit.atlas import size_words
from archfit.fit.best_depth import DepthCurve
from archfit.report.charts import look
from archfit.report.charts.look import Axes, Panel, Row, layered
from archfit.report.document import Layout

Curves = Sequence[DepthCurve]
RuleDepths = Mapping[str, Mapping[int, float]]  # that others advise, by size

HEIGHT = 260  # pixels
POINTS = 60  # of a curve
MOST_ABOVE = 0.2  # of the best loss, shown beside it
DEPTH = "depth (layers)"
SIZE = "parameters"
APART = 1.02  # that points of one size stand apart, so that none hides another


def depth_chart(curves: Curves, unit: str, page: Layout) -> altair.ConcatChart:
    """Loss over depth, a line a size; beside it the same above the best of its size."""
    layout = page.for_panels(2)
    names = [size_words(curve.size) for curve in curves]
    draw = partial(_depth_panel, curves, names)
    title = f"held-out loss (bits per {unit})"
    panels = [draw(title, layout, above=False), draw("more than the best", layout, above=True)]
    return look.side_by_side(panels, layout)


def _depth_panel(
    curves: Curves, names: Sequence[str], title: str, layout: Layout, *, above: bool
) -> Panel:
    lines: list[Row] = []
    points: list[Row] = []
    bests: list[Row] = []
    for name, curve in zip(names, curves, strict=True):
        base = curve.least if above else 0.0
        step = max(1, len(curve.depths) // POINTS)
        grid = zip(curve.depths[::step], curve.losses[::step], strict=True)
        lines += [{"size": name, "depth": float(d), "bits": float(b) - base} for d, b in grid]
        points += [
            {"size": name, "depth": p.depth, "bits": curve.brought(p) - base, "runs": len(p.losses)}
            for p in curve.points
        ]
        bests.append(_best_row(curve, {"size": name, "bits": curve.least - base}))
    depths = sorted({p.depth for curve in curves for p in curve.points})
    frame = look.ends([*look.numbers(lines, "bits"), *look.numbers(points, "bits")])
    if above:
        most = MOST_ABOVE * min(curve.least for curve in curves)
        frame = frame[0], min(frame[1], most)
        lines, points = ([r for r in rows if float(r["bits"]) <= most] for rows in (lines, points))
    axes = Axes(
        look.log_x_at("depth", DEPTH, [*depths, *look.numbers(bests, "low", "high")]).axis(
            values=depths, format="~r", labelOverlap=True
        ),
        look.linear_y("bits", title, frame),
    )
    channels = look.in_series("size", SIZE, names, layout)
    across = {"x": altair.X("low:Q", title=DEPTH), "x2": "high:Q", "color": channels["color"]}
    return layered(
        axes.lines(lines, {"color": channels["color"]}, strokeWidth=1.5),
        axes.points(points, channels, "size:N depth:Q bits:Q runs:Q", size=30),
        axes.layer("rule", bests, across, strokeWidth=5, opacity=0.35),
        axes.points(
            bests, {"color": channels["color"]}, "size:N depth:Q low:Q high:Q", shape="diamond",
            size=140,
        ),
        size=(layout.width, HEIGHT),
    )  # fmt: skip


def _best_row(curve: DepthCurve, row: Row) -> Row:
    """The best depth with its interval, which ends with the grid where it is open."""
    low, high = float(curve.depths[0]), float(curve.depths[-1])
    best = curve.best
    return row | {
        "depth": best.value or low,
        "low": low if best.low is None else best.low,
        "high": high if best.high is None else best.high,
    }


def best_depth_chart(
    families: Mapping[str, Mapping[str, Curves]], rules: RuleDepths, page: Layout
) -> altair.ConcatChart:
    """Best depth over size, a panel a family of data; in each the rules of others."""
    shown = [
        _best_row(curve, {}) for kinds in families.values() for c in kinds.values() for curve in c
    ]
    depths = look.log_ends(look.numbers(shown, "low", "high"))
    sizes = [float(c.size) for kinds in families.values() for cs in kinds.values() for c in cs]
    layout = page.for_panels(len(families))
    panels = [
        _family_panel(family, kinds, rules, (look.log_ends(sizes), depths), layout)
        for family, kinds in families.items()
    ]
    chart: altair.ConcatChart = altair.concat(*panels, columns=layout.columns).resolve_scale(
        color="independent", shape="independent"
    )
    return chart


def _family_panel(
    family: str,
    kinds: Mapping[str, Curves],
    rules: RuleDepths,
    frame: tuple[look.Ends, look.Ends],
    layout: Layout,
) -> Panel:
    rows = [
        _best_row(curve, {"kind": kind, "params": curve.size * APART**at})
        for at, (kind, curves) in enumerate(kinds.items())
        for curve in curves
    ]
    lines: list[Row] = [
        {"rule": rule, "params": size, "depth": depth}
        for rule, depths in rules.items()
        for size, depth in depths.items()
        if frame[1][0] <= depth <= frame[1][1]
    ]
    axes = Axes(
        look.log_x("params", SIZE, frame[0], layout),
        altair.Y("depth:Q", title=DEPTH, scale=look.log_scale(*frame[1])),
    )
    channels = look.in_series("kind", family, list(kinds), layout)
    text = {"text": altair.Text("rule:N")}
    grey = {"color": look.LIGHT_GREY}
    return layered(
        axes.lines(lines, {"detail": "rule:N"}, strokeDash=[3, 3], strokeWidth=1, **grey),
        axes.layer("text", _labels(lines), text, dy=-6, fontSize=9, **grey),
        axes.intervals(rows, {"color": channels["color"]}, strokeWidth=2),
        axes.points(rows, channels, "kind:N params:Q depth:Q low:Q high:Q", size=70),
        size=(layout.width, HEIGHT),
        title=family,
    )


def _labels(lines: Sequence[Row]) -> list[Row]:
    """A point of each line to put its name at: each at another size, since lines meet."""
    rules: dict[str, list[Row]] = {}
    for row in lines:
        rules.setdefault(str(row["rule"]), []).append(row)
    return [rows[(1 + at) % len(rows)] for at, rows in enumerate(rules.values())]


def variant_chart(
    kinds: Mapping[str, Mapping[str, Curves]], title: str, unit: str, page: Layout
) -> altair.ConcatChart:
    """The least loss over size, a panel a kind of data, a line a variant: a vocabulary, a rank."""
    names = list(dict.fromkeys(name for variants in kinds.values() for name in variants))
    layout = page.for_panels(len(kinds))
    panels = [
        _variant_panel(kind, variants, names, (title, unit), layout)
        for kind, variants in kinds.items()
    ]
    return look.side_by_side(panels, layout)


def _variant_panel(
    kind: str,
    variants: Mapping[str, Curves],
    names: Sequence[str],
    words: tuple[str, str],
    layout: Layout,
) -> Panel:
    title, unit = words
    rows: list[Row] = [
        {"variant": name, "params": curve.size, "bits": curve.least, "depth": curve.best.value or 0}
        for name, curves in variants.items()
        for curve in curves
    ]
    axes = Axes(
        look.log_x("params", SIZE, look.log_ends(look.numbers(rows, "params")), layout),
        look.linear_y("bits", f"least loss ({unit})", look.ends(look.numbers(rows, "bits"))),
    )
    channels = look.in_series("variant", title, names, layout)
    return layered(
        axes.lines(rows, {"color": channels["color"]}, strokeWidth=1.5),
        axes.points(rows, channels, "variant:N params:Q bits:Q depth:Q", size=60),
        size=(layout.width, HEIGHT),
        title=kind,
    )
