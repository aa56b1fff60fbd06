"""How many dimensions neighbouring tokens of a data set differ in."""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from archfit.report.document import Figure, Layout
from archfit.report.sweep_look import COLOURS, Row, rows_of

if TYPE_CHECKING:
    from archfit.report.document import Drawing

HEIGHT = 260
LEAST = 1e-4  # of the largest: what is below is noise of counting


def cooccurrence_figure(
    values: Sequence[float], *, rank: int, limit: int, width: int
) -> Figure | None:
    """Singular values beyond independence, largest first, with the ranks that matter.

    `rank` holds 99.9 % of their energy, `limit` is that of the embedding, `width` the plan's.
    """
    if not values or values[0] <= 0:
        return None
    shown = [value / values[0] for value in values if value > LEAST * values[0]]
    rules = {f"99.9 % of the energy: {rank:,}": rank, f"embedding rank limit: {limit:,}": limit}
    rules[f"recommended width: {width:,}"] = width
    return Figure(
        name="cooccurrence",
        title="How many dimensions neighbouring tokens differ in",
        caption="Singular values of the co-occurrence of neighbouring tokens, less what "
        "independent tokens would show. A steep fall means that few dimensions tell tokens apart "
        "from their neighbours alone; longer contexts may need more. Ranks count one more, that of "
        "how often each token occurs.",
        description=f"{len(shown)} singular values above {LEAST:g} of the largest; "
        + "; ".join(rules)
        + ".",
        chart=partial(_drawn, shown, rules),
    )


def _drawn(shown: Sequence[float], rules: dict[str, int], layout: Layout) -> "Drawing":
    import altair

    rows: list[Row] = [{"place": at, "share": value} for at, value in enumerate(shown, start=1)]
    lines: list[Row] = [{"at": at, "what": what} for what, at in rules.items()]
    most = max(len(shown), *rules.values())
    decades = [10.0**-power for power in range(max(1, math.ceil(-math.log10(shown[-1]))) + 1)]
    scale = altair.Scale(type="log", domain=[1, most * 1.1], nice=False)
    names = list(rules)
    legend = altair.Legend(title=None, orient="bottom", columns=layout.legend_columns - 1 or 1)
    legend.labelLimit = 300
    chart: altair.LayerChart | altair.FacetChart = altair.layer(
        rows_of(rows)
        .mark_line(color=COLOURS[0], point=altair.OverlayMarkDef(size=16, color=COLOURS[0]))
        .encode(
            x=altair.X(
                "place:Q",
                title="singular value, by size",
                scale=scale,
                axis=altair.Axis(grid=False, labelOverlap=True),
            ),
            y=altair.Y(
                "share:Q",
                title="share of the largest",
                scale=altair.Scale(type="log", domain=[decades[-1], 1], nice=False),
                axis=altair.Axis(format="~g", values=decades),
            ),
        ),
        rows_of(lines)
        .mark_rule(strokeWidth=2)
        .encode(
            x=altair.X("at:Q", scale=scale),
            color=altair.Color(
                "what:N", scale=altair.Scale(domain=names, range=list(COLOURS[1:4])), legend=legend
            ),
            strokeDash=altair.StrokeDash(
                "what:N",
                scale=altair.Scale(domain=names, range=[[6, 3], [2, 2], [1, 0]]),
                legend=legend,
            ),
        ),
        width=layout.for_panels(1).width,
        height=HEIGHT,
    )
    return chart
