"""The figures of a sweep: those its records support, comparisons of tokens and seeds among them."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

from archfit.fit.cells import CellResult, key_of
from archfit.fit.comparisons import Ranking
from archfit.fit.conclusions import short_size
from archfit.fit.fitted import Fits
from archfit.report.charts import look
from archfit.report.charts.cost import redundancy_figure, side_figure
from archfit.report.charts.look import Frame, Panel, Row, Rows
from archfit.report.charts.rank import position_figure, rank_figure
from archfit.report.charts.size import size_figure, size_panels
from archfit.report.document import Figure, Layout

MOST_CELLS = 40  # in the chart of seeds


def sweep_figures(fits: Fits, labels: Mapping[str, str]) -> tuple[Figure, ...]:
    """The papers' figures from these fits; `labels` names data sets by their hash."""
    ranks, panels = rank_figure(fits, labels), size_panels(fits, labels)
    has_depths = any(len(panel.depths) > 1 for panel in panels)
    # Of one depth, the figure of ranks and widths shows the same curve.
    sizes = size_figure(panels) if panels and (has_depths or ranks is None) else None
    more = (redundancy_figure, position_figure, side_figure, comparison_figure, spread_figure)
    found = (sizes, ranks, *(figure_of(fits, labels) for figure_of in more))
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
    repeated = sorted((c for c in fits.cells if c.seeds > 1), key=_std, reverse=True)
    if not repeated:
        return None
    cells = repeated[:MOST_CELLS]
    words = look.distinguishing_words([key_of(cell) for cell in cells], labels)
    widths = [cell.architecture.width for cell in cells]
    names = _numbered(
        [
            look.network_words(key_of(c), width, words)
            for c, width in zip(cells, widths, strict=True)
        ]
    )
    noisy = frozenset(cell for noise in fits.noise for cell in noise.noisy.cells)
    pooled = "; ".join(f"{noise.std:.2g} nats" for noise in fits.noise if noise.std > 0)
    return Figure.of(
        "spread-of-seeds",
        f"Losses about the means of {len(cells)} cells; standard deviation of one run "
        f"{pooled or 'zero'}; the noisiest, {names[0]}, has {_std(cells[0]):.2g}.",
        partial(_spread_chart, dict(zip(names, cells, strict=True)), noisy),
        left=len(repeated) - len(cells),
    )


def _std(cell: CellResult) -> float:
    return math.sqrt(cell.squares / (cell.seeds - 1))


def _spread_chart(
    cells: Mapping[str, CellResult], noisy: frozenset[CellResult], layout: Layout
) -> Panel:
    runs: list[Row] = [
        {"row": name, "difference": loss - cell.mean, "noisy": str(cell in noisy)}
        for name, cell in cells.items()
        for loss in cell.losses
    ]
    bars: list[Row] = [
        {"row": name, "low": -_std(cell), "high": _std(cell)} for name, cell in cells.items()
    ]
    shown = look.ends([*look.numbers(runs, "difference"), *look.numbers(bars, "low", "high")])
    rows = {"runs": runs, "bars": bars}
    return look.panel("spread", rows, Frame(shown, list(cells)), layout.for_panels(1))
