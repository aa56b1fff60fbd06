"""What a low rank costs on the input, on the output and on both."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from archfit.fit.contrasts import Contrast
from archfit.fit.families import FamilyKey
from archfit.fit.fitted import Fits
from archfit.report.document import Figure, Layout
from archfit.report.family_words import told_apart
from archfit.report.sweep_look import (
    MOST_PANELS,
    Row,
    ends,
    in_dashes,
    in_series,
    linear_y,
    log_ends,
    log_x_at,
    rows_of,
    side_by_side,
)

if TYPE_CHECKING:
    import altair

    from archfit.report.document import Drawing

SIDES = {
    ("embedding",): "input (embedding)",
    ("head",): "output (head)",
    ("embedding", "head"): "both",
}
COST = "cost against full tables (nats per token)"
APART = 7  # pixels


@dataclass(frozen=True, kw_only=True, slots=True)
class _Panel:
    """One network."""

    title: str
    width: int
    costs: tuple[Contrast, ...]


def side_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """Costs by rank; None where not both sides of a network were limited."""
    networks: dict[tuple[FamilyKey, int], list[Contrast]] = defaultdict(list)
    for item in fits.contrasts:
        if item.kind == "cost" and item.first.factorised in SIDES:
            networks[item.second, item.width].append(item)
    both = {
        network: items
        for network, items in networks.items()
        if {("embedding",), ("head",)} <= {item.first.factorised for item in items}
    }
    if not both:
        return None
    titles = told_apart([key for key, _ in both], labels)
    panels = [
        _Panel(title=_title(key, width, titles[key]), width=width, costs=tuple(items))
        for (key, width), items in both.items()
    ][:MOST_PANELS]
    return Figure(
        name="input-and-output-rank",
        title="What a low rank costs on the input and on the output",
        caption="The loss with a limited table less that with full tables, with 90 % intervals. "
        "At the dotted rule the rank is the width, which limits nothing: a control. Points of one "
        "rank are drawn a little apart.",
        description="Cost in nats per token: " + " ".join(_said(panel) for panel in panels),
        chart=partial(_chart, panels),
    )


def _title(key: FamilyKey, width: int, words: str) -> str:
    more = "" if words == "full tables" else f", {words}"
    return f"depth {key.depth}, width {width}{more}"


def _said(panel: _Panel) -> str:
    costs = [
        f"{SIDES[item.first.factorised]} rank {item.rank} {item.difference:+.3f}"
        for item in panel.costs
    ]
    return f"{panel.title}: {'; '.join(costs)}."


def _chart(panels: Sequence[_Panel], page: Layout) -> "Drawing":
    layout = page.for_panels(len(panels))
    return side_by_side([_panel(panel, layout) for panel in panels], layout)


def _panel(panel: _Panel, layout: Layout) -> "altair.LayerChart | altair.FacetChart":
    import altair

    ranks = log_ends((*(item.rank for item in panel.costs), panel.width))
    apart = (ranks[1] / ranks[0]) ** (APART / layout.width)
    rows = [_row(item, apart) for item in panel.costs]
    nats = ends((0.0, *(value for item in panel.costs for value in (item.low, item.high))))
    names = list(SIDES.values())
    look = in_series("side", "limited side", names, layout)
    x = log_x_at("rank", "rank (inner size)", [*(item.rank for item in panel.costs), panel.width])
    y = linear_y("cost", COST, nats)
    return altair.layer(
        rows_of([{"cost": 0.0}]).mark_rule(color="#999999").encode(y=y),
        rows_of([{"rank": float(panel.width)}])
        .mark_rule(strokeDash=[1, 3], color="#555555")
        .encode(x=x),
        rows_of(rows)
        .mark_line(strokeWidth=1.5)
        .encode(x=x, y=y, **in_dashes("side", "limited side", names, layout)),
        rows_of(rows)
        .mark_rule(strokeWidth=2)
        .encode(x=x, y=linear_y("low", COST, nats), y2="high:Q", color=look["color"]),
        rows_of(rows)
        .mark_point(size=80, filled=True, opacity=1)
        .encode(x=x, y=y, **look, tooltip=["side:N", "inner:Q", "cost:Q", "low:Q", "high:Q"]),
        width=layout.width,
        height=260,
        title=altair.TitleParams(panel.title, fontSize=12),
    )


def _row(item: Contrast, apart: float) -> Row:
    place = list(SIDES).index(item.first.factorised) - 1
    return {
        "side": SIDES[item.first.factorised],
        "inner": item.rank,
        "rank": item.rank * apart**place,
        "cost": item.difference,
        "low": item.low,
        "high": item.high,
    }
