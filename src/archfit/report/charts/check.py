"""A check in pictures: how networks ended and got there, and how tokens of the data co-occur."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import altair

from archfit.report.charts import look
from archfit.report.charts.look import Axes, Panel, Row, layered
from archfit.report.document import Figure, Layout

ROW = 42  # pixels
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
    def is_recommended(self) -> bool:
        """Whether it is the network that the others are compared with."""
        return self.low == self.high

    @property
    def reach(self) -> float:
        """How far from zero its interval goes."""
        return max(abs(self.low), abs(self.high))

    @property
    def words(self) -> str:
        """Its name and its difference."""
        if self.is_recommended:
            return self.name
        return f"{self.name}: {self.difference:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


def difference_figure(trials: Sequence[Trial]) -> Figure:
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
        chart=partial(_difference_chart, trials),
    )


def _difference_chart(trials: Sequence[Trial], layout: Layout) -> Panel:
    base = next(trial for trial in trials if trial.is_recommended)
    mean = sum(base.bits_per_byte) / len(base.bits_per_byte)
    frame = _frame(trials, mean)
    means: list[Row] = []
    runs: list[Row] = []
    beyond: list[Row] = []  # at the end of the axis, a triangle that points to where they lie
    for trial in trials:
        row: Row = {"row": trial.words}
        if trial.difference < frame[0]:
            beyond.append(row | {"bits": frame[0], "shape": "triangle-left"})
        elif trial.difference > frame[1]:
            beyond.append(row | {"bits": frame[1], "shape": "triangle-right"})
        else:
            interval: Row = {"low": max(trial.low, frame[0]), "high": min(trial.high, frame[1])}
            means.append(row | {"bits": trial.difference} | interval)
            runs += [row | {"bits": bits - mean} for bits in trial.bits_per_byte]
    names = [trial.words for trial in trials]
    axes = Axes(look.linear_x("bits", DIFFERENCE, frame, ticks=6), look.rows_y(names))
    return layered(
        axes.rule("x", 0.0),
        axes.intervals(means, {}, strokeWidth=2),
        axes.layer(
            "tick", runs, {}, thickness=1.5, size=10, color="#333333", opacity=0.8, clip=True
        ),
        axes.points(means, {}, "row:N", shape="diamond", size=90, color=look.COLOURS[0]),
        axes.points(beyond, {"shape": look.SHAPE_OF_ROW}, "row:N", size=110, color=look.COLOURS[1]),
        size=(layout.for_panels(1).width, ROW * len(names)),
    )


def _frame(trials: Sequence[Trial], mean: float) -> look.Ends:
    """The ends of the axis: one network that is far off must not squeeze all others together."""
    reach = sorted(trial.reach for trial in trials)
    while len(reach) > 2 and reach[-1] > FURTHEST * max(reach[-2], 1e-6):
        reach.pop()
    kept = [trial for trial in trials if trial.reach <= reach[-1]]
    runs = [bits - mean for trial in kept for bits in trial.bits_per_byte]
    return look.ends([0.0, *runs, *(trial.low for trial in kept), *(trial.high for trial in kept)])


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
        chart=partial(_curve_chart, trials),
    )


def _curve_chart(trials: Sequence[Trial], layout: Layout) -> Panel:
    rows: list[Row] = [
        {"network": trial.name, "tokens": tokens, "bits": bits}
        for trial in trials
        for tokens, bits in trial.curve
    ]
    names = [trial.name for trial in trials]
    ticks = altair.Axis(format="~s", tickCount=6)
    axes = Axes(
        altair.X("tokens:Q", title="training positions", axis=ticks),
        look.linear_y("bits", look.BITS, look.ends(look.numbers(rows, "bits"))),
    )
    series = look.in_series("network", "network", names, layout)
    return layered(
        axes.lines(rows, look.in_dashes("network", "network", names, layout), strokeWidth=2),
        axes.points(rows, series, "network:N tokens:Q bits:Q", size=40),
        size=(layout.for_panels(1).width, 300),
    )


LEAST = 1e-4  # of the largest: what is below is noise of counting


def cooccurrence_figure(
    values: Sequence[float], *, rank: int, limit: int, width: int
) -> Figure | None:
    """Singular values beyond independence, largest first, with the ranks that matter.

    `rank` holds 99.9 % of their energy, `limit` is that of the embedding, `width` the plan's.
    """
    if not values or values[0] <= 0:
        return None
    shares = [value / values[0] for value in values if value > LEAST * values[0]]
    rules = {
        f"99.9 % of the energy: {rank:,}": rank,
        f"embedding rank limit: {limit:,}": limit,
        f"recommended width: {width:,}": width,
    }
    return Figure(
        name="cooccurrence",
        title="How many dimensions neighbouring tokens differ in",
        caption="Singular values of the co-occurrence of neighbouring tokens, less what "
        "independent tokens would show. A steep fall means that few dimensions tell tokens apart "
        "from their neighbours alone; longer contexts may need more. Ranks count one more, that of "
        "how often each token occurs.",
        description=f"{len(shares)} singular values above {LEAST:g} of the largest; "
        + "; ".join(rules)
        + ".",
        chart=partial(_cooccurrence_chart, shares, rules),
    )


def _cooccurrence_chart(shares: Sequence[float], rules: Mapping[str, int], layout: Layout) -> Panel:
    values: list[Row] = [{"place": at, "share": share} for at, share in enumerate(shares, start=1)]
    ranks: list[Row] = [{"place": rank, "what": what} for what, rank in rules.items()]
    decades = [10.0**-power for power in range(max(1, math.ceil(-math.log10(shares[-1]))) + 1)]
    axes = Axes(
        altair.X(
            "place:Q",
            title="singular value, by size",
            scale=look.log_scale(1, max(len(shares), *rules.values()) * 1.1),
            axis=altair.Axis(grid=False, labelOverlap=True),
        ),
        altair.Y(
            "share:Q",
            title="share of the largest",
            scale=look.log_scale(decades[-1], 1),
            axis=altair.Axis(format="~g", values=decades),
        ),
    )
    columns = layout.legend_columns - 1 or 1
    legend = altair.Legend(title=None, orient="bottom", columns=columns, labelLimit=300)
    dashes = [[6, 3], [2, 2], [1, 0]]
    looks = look.series_channels(
        "what", list(rules), legend, color=look.COLOURS[1:4], strokeDash=dashes
    )
    dots = altair.OverlayMarkDef(size=16, color=look.COLOURS[0])
    return layered(
        axes.lines(values, {}, color=look.COLOURS[0], point=dots),
        axes.layer("rule", ranks, {**looks, "y": None}, strokeWidth=2),
        size=(layout.for_panels(1).width, 260),
    )
