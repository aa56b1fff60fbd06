"""A check in pictures: how networks ended and got there, and how tokens of the data co-occur."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import altair

from archfit.report.charts.look import (
    COLOURS,
    Row,
    ends,
    in_dashes,
    in_series,
    linear_x,
    linear_y,
    rows_of,
    rows_y,
)
from archfit.report.document import Figure, Layout

if TYPE_CHECKING:
    from archfit.report.document import Drawing

ROW = 42  # pixels
HEIGHT = 300
BITS = "held-out loss (bits per byte)"
DIFFERENCE = "bits per byte less those of the recommended network"
FURTHEST = 3.0  # times as far as the second furthest: what lies beyond is drawn at the edge


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A network of a check: its runs, and its difference from the recommended one."""

    name: str
    bits_per_byte: tuple[float, ...]  # of every seed, after the last step
    difference: float  # of the mean from that of the recommended network
    low: float
    high: float
    curve: tuple[tuple[int, float], ...]  # training tokens, and the mean of all seeds there

    @property
    def words(self) -> str:
        """Its name and its difference."""
        if self.low == self.high:
            return self.name
        return f"{self.name}: {self.difference:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


def standing_figure(trials: Sequence[Trial]) -> Figure:
    """Every network's difference from the recommended one, the best first."""
    return Figure(
        name="check",
        title="The check: the recommended network and its rivals on your data",
        caption="Bits per byte less those of the recommended network, left is better. Upright "
        "ticks are runs, diamonds their means, bars 90 % intervals over seeds that hold for all "
        "networks together. A triangle at the edge stands for a value beyond it.",
        description="Differences from the recommended network in bits per byte: "
        + "; ".join(trial.words for trial in trials)
        + ".",
        chart=partial(_standings, trials),
    )


def curve_figure(trials: Sequence[Trial]) -> Figure:
    """Loss against training tokens."""
    return Figure(
        name="learning-curves",
        title="How the networks of the check learnt",
        caption="The mean over seeds. Curves that are still falling apart or crossing at the right "
        "edge would say more with more --minutes.",
        description="Held-out bits per byte at the end of training: "
        + "; ".join(f"{trial.name} {trial.curve[-1][1]:.3f}" for trial in trials)
        + ".",
        chart=partial(_curves, trials),
    )


def _standings(trials: Sequence[Trial], layout: Layout) -> "Drawing":
    base = next(trial for trial in trials if trial.low == trial.high)
    mean = sum(base.bits_per_byte) / len(base.bits_per_byte)
    frame = _frame(trials)
    names = [trial.words for trial in trials]
    inside = [trial for trial in trials if frame[0] <= trial.difference <= frame[1]]
    runs: list[Row] = [
        {"row": trial.words, "bits": bits - mean}
        for trial in inside
        for bits in trial.bits_per_byte
    ]
    means = [_mean_row(trial, frame) for trial in inside]
    beyond = [_edge_row(trial, frame) for trial in trials if trial not in inside]
    y, x = rows_y(names), linear_x("bits", DIFFERENCE, frame, ticks=6)
    chart: altair.LayerChart | altair.FacetChart = altair.layer(
        rows_of([{"bits": 0.0}]).mark_rule(strokeDash=[1, 3], color="#555555").encode(x=x),
        rows_of(means)
        .mark_rule(strokeWidth=2)
        .encode(x=linear_x("low", DIFFERENCE, frame, ticks=6), x2="high:Q", y=y),
        rows_of(runs)
        .mark_tick(thickness=1.5, size=10, color="#333333", opacity=0.8, clip=True)
        .encode(x=x, y=y),
        rows_of(means)
        .mark_point(shape="diamond", size=90, filled=True, color=COLOURS[0], opacity=1)
        .encode(x=x, y=y, tooltip=["row:N"]),
        rows_of(beyond)
        .mark_point(size=110, filled=True, color=COLOURS[1], opacity=1)
        .encode(
            x=x, y=y, shape=altair.Shape("shape:N", scale=None, legend=None), tooltip=["row:N"]
        ),
        width=layout.for_panels(1).width,
        height=ROW * len(names),
    )
    return chart


def _mean_row(trial: Trial, frame: tuple[float, float]) -> Row:
    return {
        "row": trial.words,
        "bits": trial.difference,
        "low": max(trial.low, frame[0]),
        "high": min(trial.high, frame[1]),
    }


def _edge_row(trial: Trial, frame: tuple[float, float]) -> Row:
    """The end of the axis beyond which the network lies, with a triangle that points there."""
    is_better = trial.difference < frame[0]
    return {
        "row": trial.words,
        "bits": frame[0 if is_better else 1],
        "shape": "triangle-left" if is_better else "triangle-right",
    }


def _frame(trials: Sequence[Trial]) -> tuple[float, float]:
    """The ends of the axis: one network that is far off must not squeeze all others together."""
    reach = sorted(max(abs(trial.low), abs(trial.high)) for trial in trials)
    while len(reach) > 2 and reach[-1] > FURTHEST * max(reach[-2], 1e-6):
        reach.pop()
    kept = [t for t in trials if max(abs(t.low), abs(t.high)) <= reach[-1]]
    base = next(trial for trial in trials if trial.low == trial.high)
    mean = sum(base.bits_per_byte) / len(base.bits_per_byte)
    values = [bits - mean for trial in kept for bits in trial.bits_per_byte]
    return ends([0.0, *values, *(t.low for t in kept), *(t.high for t in kept)])


def _curves(trials: Sequence[Trial], layout: Layout) -> "Drawing":
    rows: list[Row] = [
        {"network": trial.name, "tokens": tokens, "bits": bits}
        for trial in trials
        for tokens, bits in trial.curve
    ]
    names = [trial.name for trial in trials]
    x = altair.X("tokens:Q", title="training positions", axis=altair.Axis(format="~s", tickCount=6))
    y = linear_y("bits", BITS, ends(float(row["bits"]) for row in rows))
    chart: altair.LayerChart | altair.FacetChart = altair.layer(
        rows_of(rows)
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, **in_dashes("network", "network", names, layout)),
        rows_of(rows)
        .mark_point(size=40, filled=True, opacity=1)
        .encode(
            x=x,
            y=y,
            tooltip=["network:N", "tokens:Q", "bits:Q"],
            **in_series("network", "network", names, layout),
        ),
        width=layout.for_panels(1).width,
        height=HEIGHT,
    )
    return chart


SPECTRUM_HEIGHT = 260
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
        height=SPECTRUM_HEIGHT,
    )
    return chart
