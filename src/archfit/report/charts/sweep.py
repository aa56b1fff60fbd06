"""The figures of a sweep that its records support; comparisons, seeds, costs of bottlenecks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import CellResult, FamilyKey, key_of
from archfit.fit.comparisons import Contrast, Ranking
from archfit.fit.conclusions import short_size
from archfit.fit.fitted import Fits
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row, Rows
from archfit.report.charts.losses import rank_figure, size_figure, size_panels
from archfit.report.document import Figure, Layout

MOST_CELLS = 40  # in the chart of seeds


def sweep_figures(fits: Fits, labels: Mapping[str, str]) -> tuple[Figure, ...]:
    """The papers' figures from these fits; `labels` names data sets by their hash."""
    ranks, panels = rank_figure(fits, labels), size_panels(fits, labels)
    has_depths = any(len(panel.depths) > 1 for panel in panels)
    # Of one depth, the figure of ranks and widths shows the same curve.
    sizes = size_figure(panels) if panels and (has_depths or ranks is None) else None
    positions = rank_figure(fits, labels, of_positions=True)
    more = (
        figure_of(fits, labels) for figure_of in (side_figure, comparison_figure, spread_figure)
    )
    found = (sizes, ranks, redundancy_figure(fits, labels), positions, *more)
    return tuple(figure for figure in found if figure is not None)


def comparison_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """A panel for each size at which networks were compared."""
    rankings = fits.rankings[: look.MOST_PANELS]
    if not rankings:
        return None
    words = []
    for ranking in rankings:
        cells = [result.first for result in ranking.results]
        bits = "; ".join(f"{_reading(cell, labels)} {cell.bits_per_byte:.4f}" for cell in cells)
        words.append(f"{short_size(ranking.best.architecture.params)} parameters: {bits}.")
    return Figure.of(
        "bits-per-byte",
        f"Bits per byte at equal size: {' '.join(words)}",
        partial(look.panel_for_each, partial(_comparison_panel, labels), rankings),
    )


def _reading(cell: CellResult, labels: Mapping[str, str]) -> str:
    """What a network reads, and its shape."""
    shape = cell.architecture
    label = f"{labels[cell.data_hash]}, " if cell.data_hash in labels else ""
    patch = shape.input.tokens_per_position
    tokens = f", patches of {patch}" if patch > 1 else ""
    return f"{label}vocabulary {shape.input.vocab:,}{tokens}: {shape.depth} x {shape.width}"


def _comparison_panel(labels: Mapping[str, str], ranking: Ranking, layout: Layout) -> Panel:
    names = _numbered([_reading(result.first, labels) for result in ranking.results])
    means: list[Row] = []
    runs: list[Row] = []
    for name, result in zip(names, ranking.results, strict=True):
        bits, difference = result.first.bits_per_byte, result.estimate
        best = bits - (difference.value or 0)  # about it the interval of the difference is laid
        low, high = best + (difference.low or 0), best + (difference.high or 0)
        means.append({"row": name, "bits": bits, "low": low, "high": high})
        nats = result.first.mean
        runs += [{"row": name, "bits": loss * bits / nats} for loss in result.first.losses]
    shown = look.ends([*look.numbers(means, "low", "high"), *look.numbers(runs, "bits")])
    best_row: Row = {"bits": ranking.best.bits_per_byte}
    rows: dict[str, Rows] = {"best": [best_row], "means": means, "runs": runs}
    title = f"about {short_size(ranking.best.architecture.params)} parameters"
    return look.panel("comparison", rows, Frame(shown, names), layout, title=title)


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number where one comes again: each row of a chart needs its own."""
    return [
        name if name not in names[:at] else f"{name} ({names[:at].count(name) + 1})"
        for at, name in enumerate(names)
    ]


def spread_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """How much seeds alone change the loss of each cell; None where nothing was repeated."""
    repeated = sorted(
        (c for c in fits.cells if c.seeds > 1), key=lambda c: c.std or 0, reverse=True
    )
    if not repeated:
        return None
    cells = repeated[:MOST_CELLS]
    words = look.distinguishing_words([key_of(cell) for cell in cells], labels)
    names = _numbered(
        [look.network_words(key_of(cell), cell.architecture.width, words) for cell in cells]
    )
    noisy = frozenset(cell for noise in fits.noise for cell in noise.noisy.cells)
    pooled = "; ".join(f"{noise.std:.2g} nats" for noise in fits.noise if noise.std > 0)
    runs: list[Row] = []
    bars: list[Row] = []
    for name, cell in zip(names, cells, strict=True):
        one: Row = {"row": name, "noisy": str(cell in noisy)}
        runs += [one | {"difference": loss - cell.mean} for loss in cell.losses]
        bars.append({"row": name, "low": -(cell.std or 0), "high": cell.std or 0})
    shown = look.ends([*look.numbers(runs, "difference"), *look.numbers(bars, "low", "high")])
    rows = {"runs": runs, "bars": bars}
    return Figure.of(
        "spread-of-seeds",
        f"Losses about the means of {len(cells)} cells; standard deviation of one run "
        f"{pooled or 'zero'}; the noisiest, {names[0]}, has {cells[0].std:.2g}.",
        lambda page: look.panel("spread", rows, Frame(shown, names), page.for_panels(1)),
        left=len(repeated) - len(cells),
    )


SIDES = {
    ("embedding",): "input (embedding)",
    ("head",): "output (head)",
    ("embedding", "head"): "both",
}
APART = 9  # pixels between points of one rank or ratio


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
        (look.network_words(key, width, words), width, items)
        for (key, width), items in both.items()
    ][: look.MOST_PANELS]
    said = []
    for title, _, items in panels:
        costs = (
            f"{SIDES[item.first.factorised]} rank {item.rank} {item.difference.estimate.value:+.3f}"
            for item in items
        )
        said.append(f"{title}: {'; '.join(costs)}.")
    return Figure.of(
        "input-and-output-rank",
        f"Cost in nats per token: {' '.join(said)}",
        partial(look.panel_for_each, _cost_panel, panels),
    )


def _cost_panel(panel: tuple[str, int, list[Contrast]], layout: Layout) -> Panel:
    title, width, costs = panel
    ranks, rows = [*(item.rank for item in costs), width], []
    apart = _step_apart(look.log_ends(ranks), layout)
    for item in costs:
        place, found = list(SIDES).index(item.first.factorised) - 1, item.difference.estimate
        row: Row = {"side": SIDES[item.first.factorised], "inner": item.rank}
        row["rank"] = item.rank * apart**place
        rows.append(row | {name: value or 0.0 for name, value in found.row("cost").items()})
    frame = Frame(look.log_ticks(ranks), look.ends([0.0, *look.numbers(rows, "low", "high")]))
    drawn: dict[str, Rows] = {"costs": rows, "width": [{"rank": float(width)}]}
    return look.panel("cost", drawn, frame, layout, list(SIDES.values()), title)


def _step_apart(shown: Ends, layout: Layout) -> float:
    """The factor on a logarithmic axis that sets points a little apart."""
    return float((shown[1] / shown[0]) ** (APART / layout.width))


class Share(NamedTuple):
    """A redundancy of which something is known."""

    item: MeasuredRedundancy
    series: str
    mark: str  # share, or at least, or at most
    value: float  # the share, or the limit where only that is known


def redundancy_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """A panel for ranks and one for attention, whichever the records support."""
    known = [item for item in fits.redundancy if item.outcome != "unknown"]
    if not known:
        return None
    rest = {item.family.with_full_tables.any_depth for item in known if item.kind == "rank"}
    apart = look.distinguishing_words(sorted(rest, key=repr), labels) if len(rest) > 1 else {}
    depths, shares = {item.family.depth for item in known}, []
    for item in known:  # series by what is limited, and by what else differs
        depth = f"depth {item.family.depth}" if len(depths) > 1 else ""
        more = apart.get(item.family.with_full_tables.any_depth, "")
        series = ", ".join(filter(None, [" and ".join(item.bottleneck), depth, more]))
        value = next(number for number in item.estimate.row().values() if number is not None)
        mark = "share" if item.outcome == "value" else item.outcome
        shares.append(Share(item, series, mark, value))
    kinds = dict.fromkeys(item.kind for item in known)
    panels = [[share for share in shares if share.item.kind == kind] for kind in kinds]
    names = list(dict.fromkeys(share.series for share in shares))
    words = (
        f"{series} at ratio {item.ratio:.3g} {'' if mark == 'share' else f'{mark} '}{value:.1%}"
        for item, series, mark, value in shares
    )
    return Figure.of(
        "redundancy",
        f"Redundant share of the block parameters: {'; '.join(words)}.",
        partial(look.panel_for_each, partial(_share_panel, names), panels),
        left=len(fits.redundancy) - len(known),
    )


def _share_panel(names: Sequence[str], points: Sequence[Share], layout: Layout) -> Panel:
    kind, estimates = points[0].item.kind, [point.item.estimate for point in points]
    ratios = look.log_ends((*(point.item.ratio for point in points), 1.0))
    every = [share for estimate in estimates for share in estimate.row().values()]
    low, high, _ = look.ends([*(share for share in every if share is not None), 0.0])
    is_open = any(estimate.high is None for estimate in estimates)
    high = 1.0 if is_open else min(high, 1.0)  # no share is above 1
    before: dict[float, int] = defaultdict(int)  # points of one ratio stand side by side
    rows: dict[str, list[Row]] = {"all": [], "share": [], "at least": [], "at most": []}
    for (item, series, mark, value), estimate in zip(points, estimates, strict=True):
        row: Row = {
            "series": series,
            "ratio": item.ratio * _step_apart(ratios, layout) ** -before[round(item.ratio, 9)],
            "share": value,
            "low": low if estimate.low is None else estimate.low,
            "high": high if estimate.high is None else estimate.high,
            "mark": mark,
        }
        before[round(item.ratio, 9)] += 1
        rows["all"].append(row)
        rows[mark].append(row)
    frame = Frame(ratios, Ends(low, high))
    return look.panel(f"share-{kind}", rows, frame, layout, names)
