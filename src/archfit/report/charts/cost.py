"""What a bottleneck costs: a low rank on input and output, and the parameters that it wastes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import FamilyKey
from archfit.fit.comparisons import Contrast
from archfit.fit.fitted import Fits
from archfit.report.charts import look
from archfit.report.charts.look import Axes, Panel, Row, layered
from archfit.report.document import Figure, Layout

SIDES = {
    ("embedding",): "input (embedding)",
    ("head",): "output (head)",
    ("embedding", "head"): "both",
}
COST = "cost against full tables (nats per token)"
APART = 9  # pixels between points of one rank or ratio


@dataclass(frozen=True, kw_only=True, slots=True)
class CostPanel:
    """What limited tables cost one network."""

    title: str
    width: int
    costs: tuple[Contrast, ...]

    @property
    def words(self) -> str:
        """All costs, for those who do not see the chart."""
        costs = [
            f"{SIDES[item.first.factorised]} rank {item.rank} {item.difference.estimate.value:+.3f}"
            for item in self.costs
        ]
        return f"{self.title}: {'; '.join(costs)}."


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
    words = look.distinguishing_words([key for key, _ in both], labels)
    panels = [
        CostPanel(title=look.network_words(key, width, words), width=width, costs=tuple(items))
        for (key, width), items in both.items()
    ][: look.MOST_PANELS]
    return Figure(
        name="input-and-output-rank",
        title="What a low rank costs on the input and on the output",
        caption="The loss with a limited table less that with full tables, with 90 % intervals. "
        "At the dotted rule the rank is the width, which limits nothing: a control. Points of one "
        "rank are drawn a little apart.",
        description="Cost in nats per token: " + " ".join(panel.words for panel in panels),
        chart=partial(look.panel_for_each, _cost_panel, panels),
    )


def _cost_panel(panel: CostPanel, layout: Layout) -> Panel:
    ranks = [*(item.rank for item in panel.costs), panel.width]
    rows = [_cost_row(item, _step_apart(look.log_ends(ranks), layout)) for item in panel.costs]
    nats = look.ends([0.0, *look.numbers(rows, "low", "high")])
    axes = Axes(
        look.log_x_at("rank", "rank (inner size)", ranks), look.linear_y("cost", COST, nats)
    )
    names = list(SIDES.values())
    series = look.in_series("side", "limited side", names, layout)
    return layered(
        axes.rule("y", 0.0, color=look.LIGHT_GREY),
        axes.rule("x", float(panel.width)),
        axes.lines(rows, look.in_dashes("side", "limited side", names, layout), strokeWidth=1.5),
        axes.intervals(rows, {"color": series["color"]}, strokeWidth=2),
        axes.points(rows, series, "side:N inner:Q cost:Q low:Q high:Q", size=80),
        size=(layout.width, 260),
        title=panel.title,
    )


def _step_apart(shown: look.Ends, layout: Layout) -> float:
    """The factor on a logarithmic axis that sets points a little apart."""
    return float((shown[1] / shown[0]) ** (APART / layout.width))


def _cost_row(item: Contrast, apart: float) -> Row:
    place = list(SIDES).index(item.first.factorised) - 1
    return {
        "side": SIDES[item.first.factorised],
        "inner": item.rank,
        "rank": item.rank * apart**place,
        **{name: value or 0.0 for name, value in item.difference.estimate.row("cost").items()},
    }


AXES = {"rank": "rank / width", "attention": "attention ratio, heads x head_dim / width"}
TITLES = {"rank": "low rank", "attention": "wide attention"}
SAVED = "redundant share of the block parameters"
LIMITS = {"at least": "triangle-up", "at most": "triangle-down"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SharePoint:
    """A redundancy of which something is known, and the name of its series."""

    item: MeasuredRedundancy
    series: str

    @property
    def value(self) -> float:
        """What is drawn: the share, or the limit where only that is known."""
        return next(share for share in self.item.estimate.row().values() if share is not None)

    @property
    def mark(self) -> str:
        """Whether it is a share or a limit."""
        return "share" if self.item.outcome == "value" else self.item.outcome

    @property
    def words(self) -> str:
        """The point, for those who do not see the chart."""
        limit = "" if self.mark == "share" else f"{self.mark} "
        return f"{self.series} at ratio {self.item.ratio:.3g} {limit}{self.value:.1%}"


def redundancy_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """A panel for ranks and one for attention, whichever the records support."""
    known = [item for item in fits.redundancy if item.outcome != "unknown"]
    if not known:
        return None
    points = _share_points(known, labels)
    kinds = dict.fromkeys(item.kind for item in known)
    panels = [[point for point in points if point.item.kind == kind] for kind in kinds]
    names = list(dict.fromkeys(point.series for point in points))
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
        + "; ".join(point.words for point in points)
        + ".",
        chart=partial(look.panel_for_each, partial(_share_panel, names), panels),
    )


def _share_points(
    items: Sequence[MeasuredRedundancy], labels: Mapping[str, str]
) -> list[SharePoint]:
    """Series by what is limited, and by what else differs."""
    rest = {item.family.with_full_tables.any_depth for item in items if item.kind == "rank"}
    words = look.distinguishing_words(sorted(rest, key=repr), labels) if len(rest) > 1 else {}
    depths = {item.family.depth for item in items}
    found = []
    for item in items:
        depth = f"depth {item.family.depth}" if len(depths) > 1 else ""
        more = words.get(item.family.with_full_tables.any_depth, "")
        names = [" and ".join(item.bottleneck), depth, more]
        found.append(SharePoint(item=item, series=", ".join(name for name in names if name)))
    return found


def _share_panel(names: Sequence[str], points: Sequence[SharePoint], layout: Layout) -> Panel:
    kind = points[0].item.kind
    ratios = look.log_ends((*(point.item.ratio for point in points), 1.0))
    every = [share for point in points for share in point.item.estimate.row().values()]
    low, high = look.ends([*(share for share in every if share is not None), 0.0])
    is_open = any(point.item.estimate.high is None for point in points)
    shares = low, 1.0 if is_open else min(high, 1.0)  # no share is above 1
    axes = Axes(
        look.log_x("ratio", AXES[kind], ratios, layout), look.linear_y("share", SAVED, shares, "~%")
    )
    rows = _share_rows(points, shares, _step_apart(ratios, layout))
    exact = [row for row in rows if row["mark"] == "share"]
    series = look.in_series("series", "bottleneck", names, layout)
    colour = {"color": series["color"]}
    hollow = {"filled": False, "strokeWidth": 2, "size": 110}
    return layered(
        axes.rule("y", 0.0, color=look.LIGHT_GREY),
        axes.lines(exact, look.in_dashes("series", "bottleneck", names, layout), strokeWidth=1),
        axes.intervals(rows, colour, strokeWidth=2, clip=True),
        axes.points(exact, series, "series:N ratio:Q share:Q low:Q high:Q", size=75),
        *(
            axes.points(
                [row for row in rows if row["mark"] == mark],
                colour,
                "series:N ratio:Q share:Q",
                shape=shape,
                **hollow,
            )
            for mark, shape in LIMITS.items()
        ),
        size=(layout.width, 240),
        title=TITLES[kind],
    )


def _share_rows(points: Sequence[SharePoint], shares: look.Ends, apart: float) -> list[Row]:
    """The points, those of one ratio side by side."""
    before: dict[float, int] = defaultdict(int)
    rows: list[Row] = []
    for point in points:
        item, estimate = point.item, point.item.estimate
        rows.append(
            {
                "series": point.series,
                "ratio": item.ratio * apart ** -before[round(item.ratio, 9)],
                "share": point.value,
                "low": shares[0] if estimate.low is None else estimate.low,
                "high": shares[1] if estimate.high is None else estimate.high,
                "mark": point.mark,
            }
        )
        before[round(item.ratio, 9)] += 1
    return rows
