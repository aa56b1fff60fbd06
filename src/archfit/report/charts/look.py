"""The one look of all charts: panels by resources/report/charts.toml, their axes, and words."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any, Literal, NamedTuple

import altair

from archfit.fit.cells import FamilyKey
from archfit.report.document import Layout, written
from archfit.spec import Tied

Row = Mapping[str, Any]
Rows = Sequence[Row]
Panel = altair.LayerChart | altair.FacetChart

LOOKS: dict[str, tuple[Any, str]] = {  # of series, by channel
    "color": (altair.Color, "colours"),
    "shape": (altair.Shape, "shapes"),
    "strokeDash": (altair.StrokeDash, "dashes"),
}
FULL_TABLES = "full tables"
PAD = 0.06  # of an axis, on each side of what it shows
MOST_PANELS = 6
# The channels that tell series apart, by what charts.toml calls them together.
BY = {"colour": "color", "shape": "shape", "points": "color shape", "lines": "color strokeDash"}
OF_ROW: dict[str, dict[str, Any]] = {  # each row names its own
    "row colour": {"color": altair.Color("colour:N", scale=None, legend=None)},
    "row shape": {"shape": altair.Shape("shape:N", scale=None, legend=None)},
}


class Ends(NamedTuple):
    """The ends of an axis, and where its ticks are, if not at round numbers."""

    low: float
    high: float
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """What a panel shows: the ends of its axes, or the names of rows that go down the page."""

    x: Ends | None = None  # None: they follow from the rows
    y: Ends | Sequence[str] | None = None
    titles: Mapping[str, str] = field(default_factory=dict)  # of x, y and series, with their values


def panel(
    name: str,
    rows: Mapping[str, Rows],
    frame: Frame,
    layout: Layout,
    names: Sequence[object] = (),
    title: str = "",
) -> Panel:
    """The panel of this name in charts.toml; `names` are those of its series.

    Layers show the rows of their names, the last on top.
    """
    about = written("charts")[name]
    about = written("charts").get(about.get("like"), {}) | about
    titled = {side: {"title": words} for side, words in frame.titles.items()}
    axes, series = {}, {}
    for side, shown in (("x", frame.x), ("y", frame.y)):
        axes[side] = _axis(side, titled.get(side, {}) | about[side], shown, layout)
    if "series" in about:
        series = _series(titled.get("series", {}) | about["series"], names, layout)
    layers = [_layer(layer, rows, axes, series) for layer in about["layers"]]
    height = about["row_height"] * len(frame.y or ()) if "row_height" in about else about["height"]
    title = title or about.get("title", "")
    words = {"title": altair.TitleParams(title, fontSize=12)} if title else {}
    return altair.layer(*layers, width=about.get("width", layout.width), height=height, **words)


def _axis(
    side: str, about: Mapping[str, Any], shown: Ends | Sequence[str] | None, layout: Layout
) -> Any:
    kind = written("charts")["kinds"][about["kind"]]
    axis, scale = (kind.get(part, {}) | about.get(part, {}) for part in ("axis", "scale"))
    drawn: dict[str, Any] = {"title": about.get("title")}
    if isinstance(shown, Ends):
        scale = scale | {"domain": [shown.low, shown.high]}
        if about["kind"] == "log":
            ticks = shown.ticks or _round_numbers(shown, most=layout.width // 45)
            number = "~s" if shown.high >= 1000 and not shown.ticks else "~r"
            axis = axis | {"values": list(ticks), "format": number}
    elif sort := about.get("sort") or shown:
        drawn["sort"] = sort
    drawn |= {"scale": altair.Scale(**scale)} if scale else {}
    drawn |= {"axis": altair.Axis(**axis)} if axis else {}
    return {"x": altair.X, "y": altair.Y}[side](about["field"], **drawn)


def _series(about: Mapping[str, Any], names: Sequence[Any], layout: Layout) -> dict[str, Any]:
    """The channels by which series differ, for points and lines the same, with one legend."""
    look = about.get("legend", written("charts")["legend"])
    if layout.columns == 1:
        look = look | about.get("narrow_legend", {})
    if "columns" in look:
        look = look | {"columns": min(look["columns"], layout.legend_columns)}
    legend = altair.Legend(title=about.get("title"), **look) if look else None
    names = names or about["names"]
    channels = {}
    for channel, (kind, key) in LOOKS.items():
        look_of_each = list(islice(cycle((written("charts")["usual"] | about)[key]), len(names)))
        scale = altair.Scale(domain=list(names), range=look_of_each)
        channels[channel] = kind(f"{about['field']}:N", scale=scale, legend=legend)
    return channels


def _layer(
    about: Mapping[str, Any],
    rows: Mapping[str, Rows],
    axes: Mapping[str, Any],
    series: Mapping[str, Any],
) -> altair.Chart:
    """A mark for each row, or a line or area through all of a series."""
    look = dict(about)
    mark, by, side, only = (look.pop(name, "") for name in ("mark", "by", "across", "only"))
    tooltip: list[str] = look.pop("tooltip", "").split()
    channels: dict[str, Any] = look.pop("channels", {})
    values = look.pop("at", ())
    shown = rows[look.pop("rows")] if "rows" in look else ()
    encoded = {only: axes[only]} if only else dict(axes)
    if side:
        encoded[side] = axes[side].copy(deep=False)
        encoded[side]["shorthand"] = "low:Q"
        encoded[f"{side}2"] = "high:Q"
        if only:  # a band: it has no name of its own
            encoded[side]["title"] = altair.Undefined
    elif only:  # lines across the panel
        name = axes[only]["shorthand"].partition(":")[0]
        shown = [{name: value} for value in values] or [
            {name: row[name]} if name in row else row for row in shown
        ]
    encoded |= OF_ROW.get(by) or {channel: series[channel] for channel in BY.get(by, "").split()}
    encoded |= ({"tooltip": tooltip} if tooltip else {}) | channels
    if mark == "point":
        look = {"filled": True, "opacity": 1} | look
    data = altair.Chart(altair.InlineData(values=list(shown)))
    chart: altair.Chart = getattr(data, f"mark_{mark}")(**look).encode(**encoded)
    return chart


def heading(name: str, **words: object) -> altair.TitleParams:
    """The heading of a chart in charts.toml; `words` fill its braces."""
    about = written("charts")[name]["heading"]
    below = [line.format(**words) for line in about["below"]]
    more = about.get("look", {})
    return altair.TitleParams(about["text"].format(**words), subtitle=below, anchor="start", **more)


def side_by_side(
    panels: Sequence[Any], layout: Layout, legends: Literal["shared", "independent"] = "shared"
) -> altair.ConcatChart:
    """Panels with one legend, or one each."""
    drawn = altair.concat(*panels, columns=layout.columns)
    chart: altair.ConcatChart = drawn.resolve_scale(**dict.fromkeys(LOOKS, legends))
    return chart


def log_ends(values: Iterable[float]) -> Ends:
    """The ends of a logarithmic axis that shows these values with room beside them."""
    logs = [math.log(value) for value in values]
    room = max(PAD * (max(logs) - min(logs)), 0.03)
    return Ends(math.exp(min(logs) - room), math.exp(max(logs) + room))


def log_ticks(values: Sequence[float]) -> Ends:
    """The same with ticks at the values."""
    return log_ends(values)._replace(ticks=tuple(sorted(set(values))))


def ends(values: Iterable[float]) -> Ends:
    """The same of a linear axis."""
    those = list(values)
    room = PAD * (max(those) - min(those)) or abs(those[0]) * PAD or 1.0
    return Ends(min(those) - room, max(those) + room)


def numbers(rows: Iterable[Row], *fields: str) -> list[float]:
    """What these fields hold, row by row."""
    return [float(row[field]) for row in rows for field in fields]


def _round_numbers(shown: Ends, most: int) -> list[float]:
    low, high = math.floor(math.log10(shown[0])), math.ceil(math.log10(shown[1]))
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        every = [step * 10.0**power for power in range(low, high + 1) for step in steps]
        inside = [tick for tick in every if shown[0] <= tick <= shown[1]]
        if len(inside) <= most:
            break
    return inside


def distinguishing_words(
    keys: Sequence[FamilyKey], labels: Mapping[str, str]
) -> dict[FamilyKey, str]:
    """What sets each of these families apart; `labels` names data sets by their hash."""
    parts = {
        key: (
            f"{labels.get(key.data_hash, f'data {key.data_hash[:8]}')}, vocabulary "
            f"{key.input.vocab:,}",
            key.words or FULL_TABLES,
            f"patches of {patch}" if (patch := key.input.tokens_per_position) > 1 else "",
            "tied head" if isinstance(key.head, Tied) else "",
            f"context {key.context}",
            f"{key.recipe.steps:,} steps",
            f"rule {key.recipe.learning_rate_rule}",
            key.recipe.precision,
        )
        for key in keys
    }
    columns = list(zip(*parts.values(), strict=True))
    kept = [at for at, column in enumerate(columns) if len(set(column)) > 1]
    return {
        key: ", ".join(words[at] for at in kept if words[at]) or words[1]
        for key, words in parts.items()
    }


def network_words(key: FamilyKey, width: int, words: Mapping[FamilyKey, str]) -> str:
    """A network by its depth and width, and by the words for its family unless they are usual."""
    more = "" if words[key] == FULL_TABLES else f", {words[key]}"
    return f"depth {key.depth}, width {width}{more}"
