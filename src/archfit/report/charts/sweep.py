"""The figures of a sweep that its records support; comparisons, seeds, costs of bottlenecks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import altair

from archfit.fit.bottlenecks import MeasuredRedundancy
from archfit.fit.cells import CellResult, grouped
from archfit.fit.comparisons import CellDifference, Ranking
from archfit.fit.fitted import Fits
from archfit.report.charts import look
from archfit.report.charts.look import Ends, Frame, Panel, Row, Rows
from archfit.report.charts.losses import rank_figure, size_figure, size_panels
from archfit.report.document import Figure, Layout, said
from archfit.spec.sizes import short_size

MOST_CELLS = 40  # in the chart of seeds
Labels = Mapping[str, str]  # of data sets, by their hash


def sweep_figures(fits: Fits, labels: Labels) -> tuple[Figure, ...]:
    """The papers' figures from these fits."""
    ranks, panels = rank_figure(fits, labels), size_panels(fits, labels)
    has_depths = any(len(panel.depths) > 1 for panel in panels)
    # Of one depth, the figure of ranks and widths shows the same curve.
    sizes = size_figure(panels) if panels and (has_depths or ranks is None) else None
    positions = rank_figure(fits, labels, of_positions=True)
    more = [draw(fits, labels) for draw in (side_figure, comparison_figure, spread_figure)]
    found = (sizes, ranks, redundancy_figure(fits, labels), positions, *more)
    return tuple(figure for figure in found if figure is not None)


def comparison_figure(fits: Fits, labels: Labels) -> Figure | None:
    """A panel for each size at which networks were compared."""
    rankings = fits.rankings[: look.MOST_PANELS]
    words = []
    for ranking in rankings:
        cells = [result.first for result in ranking.results]
        bits = "; ".join(f"{_reading(cell, labels)} {cell.bits_per_byte:.4f}" for cell in cells)
        words.append(f"{short_size(ranking.best.architecture.params)} parameters: {bits}.")
    described = f"Bits per byte at equal size: {' '.join(words)}"
    return Figure.of("bits-per-byte", described, rankings, labels) if rankings else None


def _reading(cell: CellResult, labels: Labels) -> str:
    """What a network reads, and its shape."""
    shape = cell.architecture
    label = f"{labels[cell.data_hash]}, " if cell.data_hash in labels else ""
    patch = shape.input.tokens_per_position
    tokens = f", patches of {patch}" if patch > 1 else ""
    return f"{label}vocabulary {shape.input.vocab:,}{tokens}: {shape.depth} x {shape.width}"


def comparison_chart(
    rankings: Sequence[Ranking], labels: Labels, page: Layout
) -> altair.ConcatChart:
    """Bits per byte of each network, and its interval of the difference from the best."""
    layout, panels = page.for_panels(len(rankings)), []
    for ranking in rankings:
        names = _numbered([_reading(result.first, labels) for result in ranking.results])
        means: list[Row] = []
        runs: list[Row] = []
        for name, result in zip(names, ranking.results, strict=True):
            bits, difference = result.first.bits_per_byte, result.estimate
            best = bits - (difference.value or 0)  # about it the difference's interval is laid
            low, high = best + (difference.low or 0), best + (difference.high or 0)
            means.append({"row": name, "bits": bits, "low": low, "high": high})
            nats = result.first.mean
            runs += [{"row": name, "bits": loss * bits / nats} for loss in result.first.losses]
        shown = look.ends([*look.numbers(means, "low", "high"), *look.numbers(runs, "bits")])
        best_of_all = [{"bits": ranking.best.bits_per_byte}]
        rows: dict[str, Rows] = {"best": best_of_all, "means": means, "runs": runs}
        title = f"about {short_size(ranking.best.architecture.params)} parameters"
        panels.append(look.panel("comparison", rows, Frame(shown, names), layout, title=title))
    return look.side_by_side(panels, layout)


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number where one comes again: each row of a chart needs its own."""
    return [
        name if name not in names[:at] else f"{name} ({names[:at].count(name) + 1})"
        for at, name in enumerate(names)
    ]


def spread_figure(fits: Fits, labels: Labels) -> Figure | None:
    """How much seeds alone change the loss of each cell; None where nothing was repeated."""
    repeated = [cell for cell in fits.cells if cell.seeds > 1]
    cells = sorted(repeated, key=lambda c: c.std or 0, reverse=True)[:MOST_CELLS]
    if not cells:
        return None
    words = look.distinguishing_words([cell.key for cell in cells], labels)
    names = _numbered(
        [look.network_words(cell.key, cell.architecture.width, words) for cell in cells]
    )
    stds = "; ".join(f"{noise.usual.std:.2g} nats" for noise in fits.noise if noise.usual.std > 0)
    noisy = frozenset(cell for noise in fits.noise for cell in noise.noisy.cells)
    pooled, named = stds or "zero", dict(zip(names, cells, strict=True))
    described = said("sweep.spread", cells[0], number=len(cells), pooled=pooled, name=names[0])
    left = len(repeated) - len(cells)
    return Figure.of("spread-of-seeds", described, named, noisy, left=left)


def spread_chart(
    cells: Mapping[str, CellResult], noisy: frozenset[CellResult], page: Layout
) -> Panel:
    """Runs about the mean of their network, and a standard deviation on each side."""
    runs = [
        {"row": name, "noisy": str(cell in noisy), "difference": loss - cell.mean}
        for name, cell in cells.items()
        for loss in cell.losses
    ]
    bars = [{"row": n, "low": -(c.std or 0), "high": c.std or 0} for n, c in cells.items()]
    shown = look.ends([*look.numbers(runs, "difference"), *look.numbers(bars, "low", "high")])
    frame, whole = Frame(shown, list(cells)), page.for_panels(1)
    return look.panel("spread", {"runs": runs, "bars": bars}, frame, whole)


SIDES = {
    ("embedding",): "input (embedding)",
    ("head",): "output (head)",
    ("embedding", "head"): "both",
}
APART = 9  # pixels between points of one rank or ratio
Costs = tuple[str, int, list[CellDifference]]  # of a network: its words, its width, what ranks cost


def side_figure(fits: Fits, labels: Labels) -> Figure | None:
    """Costs by rank; None where not both sides of a network were limited."""
    items = [each for each in fits.contrasts if each.kind == "cost"]
    sides = [each for each in items if each.first.key.factorised in SIDES]
    networks = grouped(sides, lambda each: (each.second.key, each.second.architecture.width))
    both = {
        network: items
        for network, items in networks.items()
        if {("embedding",), ("head",)} <= {item.first.key.factorised for item in items}
    }
    words = look.distinguishing_words([key for key, _ in both], labels) if both else {}
    panels = [
        (look.network_words(key, width, words), width, items)
        for (key, width), items in both.items()
    ][: look.MOST_PANELS]
    told = []
    for title, _, items in panels:
        costs = (said("sweep.cost", item, side=SIDES[item.first.key.factorised]) for item in items)
        told.append(f"{title}: {'; '.join(costs)}.")
    described = f"Cost in nats per token: {' '.join(told)}"
    return Figure.of("input-and-output-rank", described, panels) if panels else None


def cost_chart(networks: Sequence[Costs], page: Layout) -> altair.ConcatChart:
    """What a limited rank costs on either side, a panel a network."""
    layout, panels = page.for_panels(len(networks)), []
    for title, width, costs in networks:
        ranks, rows = [*(item.first.rank for item in costs), width], []
        apart = _step_apart(look.log_ends(ranks), layout)
        for item in costs:
            place, found = list(SIDES).index(item.first.key.factorised) - 1, item.estimate
            row = {"side": SIDES[item.first.key.factorised], "inner": item.first.rank}
            numbers = {name: value or 0.0 for name, value in found.row("cost").items()}
            rows.append({**row, "rank": item.first.rank * apart**place, **numbers})
        frame = Frame(look.log_ticks(ranks), look.ends([0.0, *look.numbers(rows, "low", "high")]))
        drawn: dict[str, Rows] = {"costs": rows, "width": [{"rank": float(width)}]}
        panels.append(look.panel("cost", drawn, frame, layout, list(SIDES.values()), title))
    return look.side_by_side(panels, layout)


def _step_apart(shown: Ends, layout: Layout) -> float:
    """The factor on a logarithmic axis that sets points a little apart."""
    return float((shown[1] / shown[0]) ** (APART / layout.width))


class Share(NamedTuple):
    """A redundancy of which something is known."""

    item: MeasuredRedundancy
    series: str
    mark: str  # share, or at least, or at most
    value: float  # the share, or the limit where only that is known


def redundancy_figure(fits: Fits, labels: Labels) -> Figure | None:
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
    words = (
        f"{series} at ratio {item.ratio:.3g} {'' if mark == 'share' else f'{mark} '}{value:.1%}"
        for item, series, mark, value in shares
    )
    described = f"Redundant share of the block parameters: {'; '.join(words)}."
    return Figure.of("redundancy", described, shares, left=len(fits.redundancy) - len(known))


def share_chart(shares: Sequence[Share], page: Layout) -> altair.ConcatChart:
    """What is redundant by ratio, a panel for each kind of bottleneck."""
    kinds = list(dict.fromkeys(share.item.kind for share in shares))
    layout, names = page.for_panels(len(kinds)), list(dict.fromkeys(each.series for each in shares))
    panels = [
        _share_panel(kind, [each for each in shares if each.item.kind == kind], names, layout)
        for kind in kinds
    ]
    return look.side_by_side(panels, layout)


def _share_panel(kind: str, points: Sequence[Share], names: Sequence[str], layout: Layout) -> Panel:
    ratios = look.log_ends((*(point.item.ratio for point in points), 1.0))
    every = [share for point in points for share in point.item.estimate.row().values()]
    low, high, _ = look.ends([*(share for share in every if share is not None), 0.0])
    is_open = any(point.item.estimate.high is None for point in points)
    high = 1.0 if is_open else min(high, 1.0)  # no share is above 1
    before = Counter[float]()  # points of one ratio stand side by side
    rows: dict[str, list[Row]] = {"all": [], "share": [], "at least": [], "at most": []}
    for item, series, mark, value in points:
        estimate, step = item.estimate, _step_apart(ratios, layout)
        row = {
            "series": series,
            "ratio": item.ratio * step ** -before[round(item.ratio, 9)],
            "share": value,
            "low": low if estimate.low is None else estimate.low,
            "high": high if estimate.high is None else estimate.high,
            "mark": mark,
        }
        before[round(item.ratio, 9)] += 1
        rows["all"].append(row)
        rows[mark].append(row)
    return look.panel(f"share-{kind}", rows, Frame(ratios, Ends(low, high)), layout, names)
