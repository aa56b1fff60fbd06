"""The one look of all charts: series by colour, shape and dash, shared axes and words."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import altair

from archfit.fit.cells import FamilyKey
from archfit.report.document import Layout
from archfit.spec import Tied

if TYPE_CHECKING:
    from archfit.report.document import Drawing

Row = dict[str, str | float]

COLOURS = ("#14365e", "#b5241b", "#2e7d4f", "#6a3d9a", "#d08a2e", "#2f7fc1", "#555555")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [7, 3], [2, 2], [8, 3, 2, 3], [1, 4])
NATS = "held-out loss (nats per token)"
PAD = 0.06  # of an axis, on each side of what it shows
MOST_PANELS = 6


def in_series(field: str, title: str, names: Sequence[str], layout: Layout) -> dict[str, Any]:
    """Colour and shape of points by the name of their series; also without colour they differ."""
    legend = _legend(title, layout)
    return {
        "color": altair.Color(f"{field}:N", scale=_scale(names, COLOURS), legend=legend),
        "shape": altair.Shape(f"{field}:N", scale=_scale(names, SHAPES), legend=legend),
    }


def in_dashes(field: str, title: str, names: Sequence[str], layout: Layout) -> dict[str, Any]:
    """Colour and dash of lines by the name of their series."""
    legend = _legend(title, layout)
    return {
        "color": altair.Color(f"{field}:N", scale=_scale(names, COLOURS), legend=legend),
        "strokeDash": altair.StrokeDash(f"{field}:N", scale=_scale(names, DASHES), legend=legend),
    }


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


def _scale(names: Sequence[str], looks: Iterable[str] | Iterable[list[int]]) -> altair.Scale:
    return altair.Scale(domain=list(names), range=list(islice(cycle(looks), len(names))))


def rows_of(rows: Sequence[Row]) -> altair.Chart:
    """A chart of these rows."""
    return altair.Chart(altair.InlineData(values=list(rows)))


def log_ends(values: Iterable[float]) -> tuple[float, float]:
    """The ends of a logarithmic axis that shows these values with room beside them."""
    logs = [math.log(value) for value in values]
    room = max(PAD * (max(logs) - min(logs)), 0.03)
    return math.exp(min(logs) - room), math.exp(max(logs) + room)


def ends(values: Iterable[float]) -> tuple[float, float]:
    """The same of a linear axis."""
    those = list(values)
    room = PAD * (max(those) - min(those)) or abs(those[0]) * PAD or 1.0
    return min(those) - room, max(those) + room


def log_x(field: str, title: str, shown: tuple[float, float], layout: Layout) -> altair.X:
    """A logarithmic axis with ticks at round numbers, as many as have room."""
    ticks = _round_numbers(shown, most=layout.width // 45)
    return _log_x(field, title, shown, ticks, "~s" if shown[1] >= 1000 else "~r")


def log_x_at(field: str, title: str, values: Sequence[float]) -> altair.X:
    """A logarithmic axis with ticks at the values that it shows."""
    return _log_x(field, title, log_ends(values), sorted(set(values)), "~r")


def _log_x(
    field: str, title: str, shown: tuple[float, float], ticks: Sequence[float], number: str
) -> altair.X:
    return altair.X(
        f"{field}:Q",
        title=title,
        scale=altair.Scale(type="log", domain=list(shown), nice=False),
        axis=altair.Axis(values=list(ticks), format=number, labelOverlap=True),
    )


def _round_numbers(shown: tuple[float, float], most: int) -> list[float]:
    low, high = math.floor(math.log10(shown[0])), math.ceil(math.log10(shown[1]))
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        every = [step * 10.0**power for power in range(low, high + 1) for step in steps]
        inside = [tick for tick in every if shown[0] <= tick <= shown[1]]
        if len(inside) <= most:
            return inside
    return inside


def linear_y(field: str, title: str, shown: tuple[float, float], number: str = "") -> altair.Y:
    """A linear axis that need not begin at zero."""
    scale = altair.Scale(domain=list(shown), nice=False, zero=False)
    axis = altair.Axis(format=number, tickCount=6) if number else altair.Axis(tickCount=6)
    return altair.Y(f"{field}:Q", title=title, scale=scale, axis=axis)


def linear_x(field: str, title: str, shown: tuple[float, float], ticks: int = 5) -> altair.X:
    """The same across the page."""
    scale = altair.Scale(domain=list(shown), nice=False, zero=False)
    axis = altair.Axis(tickCount=ticks, labelOverlap=True)
    return altair.X(f"{field}:Q", title=title, scale=scale, axis=axis)


def rows_y(names: Sequence[str]) -> altair.Y:
    """A row for each name, which stands above it inside the panel, so that it may be long."""
    return altair.Y(
        "row:N",
        title=None,
        sort=list(names),
        axis=altair.Axis(
            labelAlign="left",
            labelPadding=-4,
            labelOffset=-11,
            labelLimit=400,
            ticks=False,
            domain=False,
            grid=False,
        ),
    )


def side_by_side(panels: "Sequence[Drawing]", layout: Layout) -> "Drawing":
    """Panels with one legend."""
    chart: altair.ConcatChart = altair.concat(*panels, columns=layout.columns).resolve_scale(
        color="shared", shape="shared", strokeDash="shared"
    )
    return chart


def question_of(key: FamilyKey) -> FamilyKey:
    """The family without its depth: curves of one question are compared."""
    return replace(key, depth=1)


def told_apart(keys: Sequence[FamilyKey], labels: Mapping[str, str]) -> dict[FamilyKey, str]:
    """What to call each of these; `labels` names data sets by their hash."""
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
        key.words or "full tables",
        f"patches of {patch}" if patch > 1 else "",
        "tied head" if isinstance(key.head, Tied) else "",
        f"context {key.context}",
        f"{key.recipe.steps:,} steps",
        f"rule {key.recipe.learning_rate_rule}",
        key.recipe.precision,
    )
