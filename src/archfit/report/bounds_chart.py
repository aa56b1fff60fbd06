"""Lower and upper bounds over depth, for several widths."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from archfit.theory.bounds import Shape, bounds_report, regime
from archfit.theory.quantities import WIDTH

if TYPE_CHECKING:
    import altair

Row = dict[str, str | float]

MOST_DEPTHS = 32  # points on a curve
DEEPEST = 10_000
UPPER, LOWER, DISPUTED = (
    "best upper bound that holds",
    "best lower bound that holds",
    "papers' formula for deep networks (disputed)",
)


def bounds_over_depth(shape: Shape, *, columns: int = 2, width: int = 330) -> "altair.FacetChart":
    """log3 of the bounds against depth, one panel for each of four widths around the shape's."""
    import altair

    if shape.depth > DEEPEST:
        raise ValueError(
            f"depth={shape.depth} is too deep for a chart over depth; use at most {DEEPEST} with it"
        )
    widths = _widths(shape)
    rows = [row for width in widths for row in _rows(shape, width)]
    layers = (_curves(), _thresholds(), _threshold_labels(), _own_depth())
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


def _curves() -> "altair.Chart":
    import altair

    names = [UPPER, LOWER, DISPUTED]
    legend = altair.Legend(
        title=None, orient="top", labelLimit=400, symbolType="stroke", symbolSize=900
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


def _thresholds() -> "altair.Chart":
    import altair

    rules: altair.Chart = (
        altair.Chart()
        .transform_filter("isValid(datum.rule)")
        .mark_rule(color="#555555", strokeDash=[1, 3])
        .encode(x="rule:Q")
    )
    return rules


def _threshold_labels() -> "altair.Chart":
    import altair

    texts: altair.Chart = (
        altair.Chart()
        .transform_filter("isValid(datum.rule)")
        .mark_text(angle=270, align="left", dx=-214, dy=-6, fontSize=9, color="#333333")
        .encode(x="rule:Q", y=altair.value(0), text="label:N")
    )
    return texts


def _own_depth() -> "altair.Chart":
    import altair

    rule: altair.Chart = (
        altair.Chart()
        .transform_filter("isValid(datum.own)")
        .mark_rule(color="#000000")
        .encode(x="own:Q")
    )
    return rule
