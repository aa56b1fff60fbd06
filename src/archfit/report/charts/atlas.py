"""The figures of the atlas: loss over depth, best depths over size, vocabularies and ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import altair

from archfit.fit.atlas import size_words
from archfit.fit.best_depth import DepthCurve
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row, Rows
from archfit.report.document import Layout

Curves = Sequence[DepthCurve]
RuleDepths = Mapping[str, Mapping[int, float]]  # that others advise, by size

POINTS = 60  # of a curve
MOST_ABOVE = 0.2  # of the best loss, shown beside it
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
    depths = sorted({float(p.depth) for curve in curves for p in curve.points})
    losses = look.ends([*look.numbers(lines, "bits"), *look.numbers(points, "bits")])
    if above:
        most = MOST_ABOVE * min(curve.least for curve in curves)
        losses = losses._replace(high=min(losses.high, most))
        lines, points = ([r for r in rows if float(r["bits"]) <= most] for rows in (lines, points))
    shown = look.log_ends([*depths, *look.numbers(bests, "low", "high")])
    rows = {"lines": lines, "points": points, "bests": bests}
    frame = Frame(shown._replace(ticks=tuple(depths)), losses, {"y": title})
    return look.panel("atlas-depth", rows, frame, layout, names)


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
    frame = Frame(look.log_ends(sizes), depths)
    panels = [
        _family_panel(kinds, rules, replace(frame, titles={"series": family}), layout)
        for family, kinds in families.items()
    ]
    chart: altair.ConcatChart = altair.concat(*panels, columns=layout.columns).resolve_scale(
        color="independent", shape="independent"
    )
    return chart


def _family_panel(
    kinds: Mapping[str, Curves], rules: RuleDepths, frame: Frame, layout: Layout
) -> Panel:
    bests = [
        _best_row(curve, {"kind": kind, "params": curve.size * APART**at})
        for at, (kind, curves) in enumerate(kinds.items())
        for curve in curves
    ]
    shown, family = frame.y, frame.titles["series"]
    assert isinstance(shown, Ends)
    lines: dict[str, list[Row]] = {
        rule: [
            {"rule": rule, "params": size, "depth": depth}
            for size, depth in depths.items()
            if shown.low <= depth <= shown.high
        ]
        for rule, depths in rules.items()
    }
    drawn = [line for line in lines.values() if line]
    rows: dict[str, Rows] = {
        "rules": [row for line in drawn for row in line],
        # a point of each line to put its name at: each at another size, since lines meet
        "names": [line[(1 + at) % len(line)] for at, line in enumerate(drawn)],
        "bests": bests,
    }
    return look.panel("atlas-best", rows, frame, layout, list(kinds), family)


def variant_chart(kinds: Mapping[str, Mapping[str, Curves]], page: Layout) -> altair.ConcatChart:
    """The least loss over size, a panel a kind of data, a line a variant: a vocabulary, a rank."""
    names = list(dict.fromkeys(name for variants in kinds.values() for name in variants))
    draw = partial(_variant_panel, names)
    return look.panel_for_each(draw, list(kinds.items()), page)


def _variant_panel(
    names: Sequence[str], variants: tuple[str, Mapping[str, Curves]], layout: Layout
) -> Panel:
    rows: list[Row] = [
        {"variant": name, "params": curve.size, "bits": curve.least, "depth": curve.best.value or 0}
        for name, curves in variants[1].items()
        for curve in curves
    ]
    sizes, bits = (look.numbers(rows, field) for field in ("params", "bits"))
    frame = Frame(look.log_ends(sizes), look.ends(bits))
    return look.panel("atlas-variants", {"bests": rows}, frame, layout, names, variants[0])
