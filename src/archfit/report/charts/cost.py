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
from archfit.report.charts.look import Ends, Frame, Panel, Row, Rows
from archfit.report.document import Figure, Layout

SIDES = {
    ("embedding",): "input (embedding)",
    ("head",): "output (head)",
    ("embedding", "head"): "both",
}
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
    return Figure.of(
        "input-and-output-rank",
        f"Cost in nats per token: {' '.join(panel.words for panel in panels)}",
        partial(look.panel_for_each, _cost_panel, panels),
    )


def _cost_panel(panel: CostPanel, layout: Layout) -> Panel:
    ranks = [*(item.rank for item in panel.costs), panel.width]
    rows = [_cost_row(item, _step_apart(look.log_ends(ranks), layout)) for item in panel.costs]
    frame = Frame(look.log_ticks(ranks), look.ends([0.0, *look.numbers(rows, "low", "high")]))
    drawn: dict[str, Rows] = {"costs": rows, "width": [{"rank": float(panel.width)}]}
    return look.panel("cost", drawn, frame, layout, list(SIDES.values()), panel.title)


def _step_apart(shown: Ends, layout: Layout) -> float:
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


TITLES = {"rank": "low rank", "attention": "wide attention"}


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
    return Figure.of(
        "redundancy",
        f"Redundant share of the block parameters: {'; '.join(point.words for point in points)}.",
        partial(look.panel_for_each, partial(_share_panel, names), panels),
        left=len(fits.redundancy) - len(known),
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
    low, high, _ = look.ends([*(share for share in every if share is not None), 0.0])
    is_open = any(point.item.estimate.high is None for point in points)
    shares = Ends(low, 1.0 if is_open else min(high, 1.0))  # no share is above 1
    rows = _share_rows(points, shares, _step_apart(ratios, layout))
    marked: dict[str, Rows] = {
        mark: [row for row in rows if row["mark"] == mark]
        for mark in ("share", "at least", "at most")
    }
    frame, title = Frame(ratios, shares), TITLES[kind]
    return look.panel(f"share-{kind}", {"all": rows, **marked}, frame, layout, names, title)


def _share_rows(points: Sequence[SharePoint], shares: Ends, apart: float) -> list[Row]:
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
