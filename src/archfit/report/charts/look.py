"""The one look of all charts: axes, layers, series by colour, shape and dash, and words."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Literal, TypeVar

import altair

from archfit.fit.cells import FamilyKey
from archfit.report.document import Layout
from archfit.spec import Tied

Row = dict[str, str | float]
Rows = Sequence[Row]
Channels = Mapping[str, Any]  # what marks show, by the names of altair's channels
Ends = tuple[float, float]  # of an axis
Panel = altair.LayerChart | altair.FacetChart
Item = TypeVar("Item")

COLOURS = ("#14365e", "#b5241b", "#2e7d4f", "#6a3d9a", "#d08a2e", "#2f7fc1", "#555555")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [7, 3], [2, 2], [8, 3, 2, 3], [1, 4])
GREY, LIGHT_GREY, BLACK = "#555555", "#999999", "#000000"
NATS = "held-out loss (nats per token)"
BITS = "held-out loss (bits per byte)"
FULL_TABLES = "full tables"
PAD = 0.06  # of an axis, on each side of what it shows
MOST_PANELS = 6
SHAPE_OF_ROW = altair.Shape("shape:N", scale=None, legend=None)  # each row names its own
COLOUR_OF_ROW = altair.Color("colour:N", scale=None, legend=None)


def series_channels(
    field: str, names: Sequence[Any], legend: altair.Legend | None, **looks: Iterable[Any]
) -> dict[str, Any]:
    """Channels that tell series apart by their name: `color`, `shape` or `strokeDash`."""
    kinds = {"color": altair.Color, "shape": altair.Shape, "strokeDash": altair.StrokeDash}
    channels = {}
    for channel, look in looks.items():
        scale = altair.Scale(domain=list(names), range=list(islice(cycle(look), len(names))))
        channels[channel] = kinds[channel](f"{field}:N", scale=scale, legend=legend)
    return channels


def in_series(field: str, title: str, names: Sequence[str], layout: Layout) -> dict[str, Any]:
    """Colour and shape of points by the name of their series; also without colour they differ."""
    return series_channels(field, names, _legend(title, layout), color=COLOURS, shape=SHAPES)


def in_dashes(field: str, title: str, names: Sequence[str], layout: Layout) -> dict[str, Any]:
    """Colour and dash of lines by the name of their series."""
    return series_channels(field, names, _legend(title, layout), color=COLOURS, strokeDash=DASHES)


def _legend(title: str, layout: Layout) -> altair.Legend:
    """The same for points and lines, so that they have one."""
    return altair.Legend(
        title=title,
        orient="bottom",
        columns=layout.legend_columns,
        labelLimit=300,
        symbolSize=90,
        symbolOpacity=1,
        symbolDash=[1, 0],
        symbolStrokeWidth=0,
    )


def rows_of(rows: Sequence[Row]) -> altair.Chart:
    """A chart of these rows."""
    return altair.Chart(altair.InlineData(values=list(rows)))


@dataclass(frozen=True, slots=True)
class Axes:
    """Two axes and the layers between them; `look` describes marks, `channels` what they show."""

    x: altair.X
    y: altair.Y

    def layer(self, mark: str, rows: Rows, channels: Channels, **look: object) -> altair.Chart:
        """A mark for each row, or a line or area through all; a channel of None is left out."""
        every = {"x": self.x, "y": self.y, **channels}
        kept = {name: channel for name, channel in every.items() if channel is not None}
        chart: altair.Chart = getattr(rows_of(rows), f"mark_{mark}")(**look).encode(**kept)
        return chart

    def lines(self, rows: Rows, channels: Channels, **look: object) -> altair.Chart:
        """A line through the rows of each series."""
        return self.layer("line", rows, channels, **look)

    def points(
        self, rows: Rows, channels: Channels, tooltip: str = "", **look: object
    ) -> altair.Chart:
        """Filled points; `tooltip` names the fields that those who point at one are told."""
        told = {"tooltip": tooltip.split()} if tooltip else {}
        filled = {"filled": True, "opacity": 1} | look
        return self.layer("point", rows, {**channels, **told}, **filled)

    def intervals(
        self, rows: Rows, channels: Channels, mark: str = "rule", **look: object
    ) -> altair.Chart:
        """From `low` to `high`: across where names of rows go down the page, else upright."""
        side = "x" if self.y["shorthand"] == "row:N" else "y"
        low = getattr(self, side).copy(deep=False)
        low["shorthand"] = "low:Q"
        return self.layer(mark, rows, {**channels, side: low, f"{side}2": "high:Q"}, **look)

    def means_over_runs(
        self, means: Rows, runs: Rows, channels: Channels, tooltip: str
    ) -> tuple[altair.Chart, ...]:
        """Large points with intervals, and behind them a small point for each run."""
        return (
            self.intervals(means, {"color": channels["color"]}, strokeWidth=2),
            self.points(runs, channels, size=16, opacity=0.5),
            self.points(means, channels, tooltip, size=75),
        )

    def rule(self, side: Literal["x", "y"], *values: float, **look: object) -> altair.Chart:
        """Straight lines across the panel at these values of an axis; grey dots unless told."""
        field = getattr(self, side)["shorthand"].split(":")[0]
        rows: list[Row] = [{field: value} for value in values]
        look = look or {"strokeDash": [1, 3], "color": GREY}
        return self.layer("rule", rows, {"y" if side == "x" else "x": None}, **look)


def layered(*layers: altair.Chart, size: tuple[int, int], title: str = "") -> Panel:
    """One panel of these layers, the last on top; `size` is its width and height in pixels."""
    words = {"title": altair.TitleParams(title, fontSize=12)} if title else {}
    return altair.layer(*layers, width=size[0], height=size[1], **words)


def side_by_side(panels: Sequence[Any], layout: Layout) -> altair.ConcatChart:
    """Panels with one legend."""
    chart: altair.ConcatChart = altair.concat(*panels, columns=layout.columns).resolve_scale(
        color="shared", shape="shared", strokeDash="shared"
    )
    return chart


def panel_for_each(
    draw: Callable[[Item, Layout], Panel], items: Sequence[Item], page: Layout
) -> altair.ConcatChart:
    """The panels of these items side by side, in what room the page has."""
    layout = page.for_panels(len(items))
    return side_by_side([draw(item, layout) for item in items], layout)


def log_ends(values: Iterable[float]) -> Ends:
    """The ends of a logarithmic axis that shows these values with room beside them."""
    logs = [math.log(value) for value in values]
    room = max(PAD * (max(logs) - min(logs)), 0.03)
    return math.exp(min(logs) - room), math.exp(max(logs) + room)


def ends(values: Iterable[float]) -> Ends:
    """The same of a linear axis."""
    those = list(values)
    room = PAD * (max(those) - min(those)) or abs(those[0]) * PAD or 1.0
    return min(those) - room, max(those) + room


def numbers(rows: Iterable[Row], *fields: str) -> list[float]:
    """What these fields hold, row by row."""
    return [float(row[field]) for row in rows for field in fields]


def log_scale(*shown: float) -> altair.Scale:
    """A logarithmic scale that ends where it is told, or else with the values."""
    domain = list(shown) or altair.Undefined
    return altair.Scale(type="log", nice=False, domain=domain)


def log_x(field: str, title: str, shown: Ends, layout: Layout) -> altair.X:
    """A logarithmic axis with ticks at round numbers, as many as have room."""
    ticks = _round_numbers(shown, most=layout.width // 45)
    return _log_x(field, title, shown, ticks, "~s" if shown[1] >= 1000 else "~r")


def log_x_at(field: str, title: str, values: Sequence[float]) -> altair.X:
    """A logarithmic axis with ticks at the values that it shows."""
    return _log_x(field, title, log_ends(values), sorted(set(values)), "~r")


def _log_x(field: str, title: str, shown: Ends, ticks: Sequence[float], number: str) -> altair.X:
    axis = altair.Axis(values=list(ticks), format=number, labelOverlap=True)
    return altair.X(f"{field}:Q", title=title, scale=log_scale(*shown), axis=axis)


def _round_numbers(shown: Ends, most: int) -> list[float]:
    low, high = math.floor(math.log10(shown[0])), math.ceil(math.log10(shown[1]))
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        every = [step * 10.0**power for power in range(low, high + 1) for step in steps]
        inside = [tick for tick in every if shown[0] <= tick <= shown[1]]
        if len(inside) <= most:
            break
    return inside


def linear_y(field: str, title: str, shown: Ends, number: str = "") -> altair.Y:
    """A linear axis that need not begin at zero."""
    scale = altair.Scale(domain=list(shown), nice=False, zero=False)
    axis = altair.Axis(format=number, tickCount=6) if number else altair.Axis(tickCount=6)
    return altair.Y(f"{field}:Q", title=title, scale=scale, axis=axis)


def linear_x(field: str, title: str, shown: Ends, ticks: int = 5) -> altair.X:
    """The same across the page."""
    scale = altair.Scale(domain=list(shown), nice=False, zero=False)
    axis = altair.Axis(tickCount=ticks, labelOverlap=True)
    return altair.X(f"{field}:Q", title=title, scale=scale, axis=axis)


def rows_y(names: Sequence[str]) -> altair.Y:
    """A row for each name, which stands above it inside the panel, so that it may be long."""
    places: dict[str, Any] = {"labelAlign": "left", "labelPadding": -4, "labelOffset": -11}
    axis = altair.Axis(**places, labelLimit=400, ticks=False, domain=False, grid=False)
    return altair.Y("row:N", title=None, sort=list(names), axis=axis)


def distinguishing_words(
    keys: Sequence[FamilyKey], labels: Mapping[str, str]
) -> dict[FamilyKey, str]:
    """What sets each of these families apart; `labels` names data sets by their hash."""
    parts = {key: _parts(key, labels) for key in keys}
    columns = list(zip(*parts.values(), strict=True))
    kept = [at for at, column in enumerate(columns) if len(set(column)) > 1]
    return {
        key: ", ".join(words[at] for at in kept if words[at]) or words[1]
        for key, words in parts.items()
    }


def _parts(key: FamilyKey, labels: Mapping[str, str]) -> tuple[str, ...]:
    patch = key.input.tokens_per_position
    label = labels.get(key.data_hash, f"data {key.data_hash[:8]}")
    return (
        f"{label}, vocabulary {key.input.vocab:,}",
        key.words or FULL_TABLES,
        f"patches of {patch}" if patch > 1 else "",
        "tied head" if isinstance(key.head, Tied) else "",
        f"context {key.context}",
        f"{key.recipe.steps:,} steps",
        f"rule {key.recipe.learning_rate_rule}",
        key.recipe.precision,
    )


def network_words(key: FamilyKey, width: int, words: Mapping[FamilyKey, str]) -> str:
    """A network by its depth and width, and by the words for its family unless they are usual."""
    more = "" if words[key] == FULL_TABLES else f", {words[key]}"
    return f"depth {key.depth}, width {width}{more}"
