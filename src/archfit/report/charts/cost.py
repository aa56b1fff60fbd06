"""What a bottleneck costs: a low rank on input and output, and the parameters that it wastes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import altair

from archfit.fit.cells import FamilyKey
from archfit.fit.comparisons import Contrast
from archfit.fit.fitted import Fits
from archfit.fit.redundancy import Redundancy
from archfit.report.charts.look import (
    MOST_PANELS,
    Row,
    ends,
    in_dashes,
    in_series,
    linear_y,
    log_ends,
    log_x,
    log_x_at,
    question_of,
    rows_of,
    side_by_side,
    told_apart,
)
from archfit.report.document import Figure, Layout

if TYPE_CHECKING:
    from archfit.report.document import Drawing

SIDES = {
    ("embedding",): "input (embedding)",
    ("head",): "output (head)",
    ("embedding", "head"): "both",
}
COST = "cost against full tables (nats per token)"
APART = 7  # pixels


@dataclass(frozen=True, kw_only=True, slots=True)
class _CostPanel:
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
        _CostPanel(title=_title(key, width, titles[key]), width=width, costs=tuple(items))
        for (key, width), items in both.items()
    ][:MOST_PANELS]
    return Figure(
        name="input-and-output-rank",
        title="What a low rank costs on the input and on the output",
        caption="The loss with a limited table less that with full tables, with 90 % intervals. "
        "At the dotted rule the rank is the width, which limits nothing: a control. Points of one "
        "rank are drawn a little apart.",
        description="Cost in nats per token: " + " ".join(_costs_said(panel) for panel in panels),
        chart=partial(_cost_chart, panels),
    )


def _title(key: FamilyKey, width: int, words: str) -> str:
    more = "" if words == "full tables" else f", {words}"
    return f"depth {key.depth}, width {width}{more}"


def _costs_said(panel: _CostPanel) -> str:
    costs = [
        f"{SIDES[item.first.factorised]} rank {item.rank} {item.difference.estimate.value:+.3f}"
        for item in panel.costs
    ]
    return f"{panel.title}: {'; '.join(costs)}."


def _cost_chart(panels: Sequence[_CostPanel], page: Layout) -> "Drawing":
    layout = page.for_panels(len(panels))
    return side_by_side([_cost_panel(panel, layout) for panel in panels], layout)


def _cost_panel(panel: _CostPanel, layout: Layout) -> altair.LayerChart | altair.FacetChart:
    ranks = log_ends((*(item.rank for item in panel.costs), panel.width))
    apart = (ranks[1] / ranks[0]) ** (APART / layout.width)
    rows = [_cost_row(item, apart) for item in panel.costs]
    nats = ends((0.0, *(float(row[end]) for row in rows for end in ("low", "high"))))
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


def _cost_row(item: Contrast, apart: float) -> Row:
    place = list(SIDES).index(item.first.factorised) - 1
    return {
        "side": SIDES[item.first.factorised],
        "inner": item.rank,
        "rank": item.rank * apart**place,
        **{name: value or 0.0 for name, value in item.difference.estimate.row("cost").items()},
    }


APART = 9  # pixels between points of one ratio
AXES = {"rank": "rank / width", "attention": "attention ratio, heads x head_dim / width"}
TITLES = {"rank": "low rank", "attention": "wide attention"}
SAVED = "redundant share of the block parameters"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Point:
    """A redundancy of which something is known, and the name of its series."""

    item: Redundancy
    series: str

    @property
    def value(self) -> float:
        """What is drawn: the share, or the limit where only that is known."""
        known = self.item.estimate.row().values()
        return next(share for share in known if share is not None)

    @property
    def mark(self) -> str:
        """Whether it is a share or a limit."""
        return "share" if self.item.outcome == "value" else self.item.outcome


def redundancy_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """A panel for ranks and one for attention, whichever the records support."""
    known = [item for item in fits.redundancy if item.outcome != "unknown"]
    if not known:
        return None
    points = _share_points(known, labels)
    left = len(fits.redundancy) - len(known)
    return Figure(
        name="redundancy",
        title="What a bottleneck wastes",
        caption="The share of the block parameters that a network without the bottleneck saves at "
        "the same loss, with 90 % intervals. A hollow triangle is a limit: at least (up) or at "
        "most (down) so much. An interval that runs to the edge ends beyond the sizes that were "
        "trained. Points of one ratio are drawn a little apart."
        + (f" Of {left} more cells nothing can be said." if left else ""),
        description="Redundant share of the block parameters: "
        + "; ".join(_share_said(point) for point in points)
        + ".",
        chart=partial(_share_chart, points),
    )


def _share_points(items: Sequence[Redundancy], labels: Mapping[str, str]) -> list[_Point]:
    """Series by what is limited, and by what else differs."""
    rest = {question_of(item.family.with_full_tables) for item in items if item.kind == "rank"}
    told = told_apart(sorted(rest, key=repr), labels) if len(rest) > 1 else {}
    depths = {item.family.depth for item in items}
    found = []
    for item in items:
        names = [" and ".join(item.bottleneck)]
        names += [f"depth {item.family.depth}"] if len(depths) > 1 else []
        names += [words for words in [told.get(question_of(item.family.with_full_tables))] if words]
        found.append(_Point(item=item, series=", ".join(names)))
    return found


def _share_said(point: _Point) -> str:
    limit = "" if point.mark == "share" else f"{point.mark} "
    return f"{point.series} at ratio {point.item.ratio:.3g} {limit}{point.value:.1%}"


def _share_chart(points: Sequence[_Point], page: Layout) -> "Drawing":
    names = list(dict.fromkeys(point.series for point in points))
    kinds = list(dict.fromkeys(point.item.kind for point in points))
    layout = page.for_panels(len(kinds))
    panels = [
        _share_panel([point for point in points if point.item.kind == kind], names, layout)
        for kind in kinds
    ]
    return side_by_side(panels, layout)


def _share_panel(
    points: Sequence[_Point], names: Sequence[str], layout: Layout
) -> altair.LayerChart | altair.FacetChart:
    kind = points[0].item.kind
    ratios = log_ends((*(point.item.ratio for point in points), 1.0))
    low, high = ends((*_known(points), 0.0))
    is_open = any(point.item.estimate.high is None for point in points)
    shares = low, 1.0 if is_open else min(high, 1.0)  # no share is above 1
    rows = _share_rows(points, shares, (ratios[1] / ratios[0]) ** (APART / layout.width))
    x, y = log_x("ratio", AXES[kind], ratios, layout), linear_y("share", SAVED, shares, "~%")
    look = in_series("series", "bottleneck", names, layout)
    limits = {"up": "at least", "down": "at most"}
    return altair.layer(
        rows_of([{"share": 0.0}]).mark_rule(color="#999999").encode(y=y),
        rows_of([row for row in rows if row["mark"] == "share"])
        .mark_line(strokeWidth=1)
        .encode(x=x, y=y, **in_dashes("series", "bottleneck", names, layout)),
        rows_of(rows)
        .mark_rule(strokeWidth=2, clip=True)
        .encode(x=x, y=linear_y("low", SAVED, shares, "~%"), y2="high:Q", color=look["color"]),
        rows_of([row for row in rows if row["mark"] == "share"])
        .mark_point(size=75, filled=True, opacity=1)
        .encode(x=x, y=y, **look, tooltip=["series:N", "ratio:Q", "share:Q", "low:Q", "high:Q"]),
        *(
            rows_of([row for row in rows if row["mark"] == mark])
            .mark_point(shape=f"triangle-{way}", size=110, filled=False, strokeWidth=2, opacity=1)
            .encode(x=x, y=y, color=look["color"], tooltip=["series:N", "ratio:Q", "share:Q"])
            for way, mark in limits.items()
        ),
        width=layout.width,
        height=240,
        title=altair.TitleParams(TITLES[kind], fontSize=12),
    )


def _known(points: Sequence[_Point]) -> list[float]:
    every = [point.item.estimate.row().values() for point in points]
    return [share for shares in every for share in shares if share is not None]


def _share_rows(points: Sequence[_Point], shares: tuple[float, float], apart: float) -> list[Row]:
    """The points, those of one ratio side by side."""
    before: dict[float, int] = defaultdict(int)
    rows: list[Row] = []
    for point in points:
        item, place = point.item, before[round(point.item.ratio, 9)]
        before[round(item.ratio, 9)] += 1
        rows.append(
            {
                "series": point.series,
                "ratio": item.ratio * apart**-place,
                "share": point.value,
                "low": shares[0] if item.estimate.low is None else item.estimate.low,
                "high": shares[1] if item.estimate.high is None else item.estimate.high,
                "mark": point.mark,
            }
        )
    return rows
