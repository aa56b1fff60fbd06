"""The figures of a sweep: those its records support, comparisons of tokens and seeds among them."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import altair

from archfit.fit.cells import Cell, key_of
from archfit.fit.comparisons import CellDifference, Ranking
from archfit.fit.conclusions import short_size
from archfit.fit.fitted import Fits
from archfit.report.charts.cost import redundancy_figure, side_figure
from archfit.report.charts.look import (
    COLOURS,
    MOST_PANELS,
    Row,
    ends,
    linear_x,
    rows_of,
    rows_y,
    side_by_side,
    told_apart,
)
from archfit.report.charts.rank import position_figure, rank_figure
from archfit.report.charts.size import size_figure, size_panels
from archfit.report.document import Figure, Layout

if TYPE_CHECKING:
    from archfit.report.document import Drawing

ROW = 36  # pixels
MOST_CELLS = 40  # in the chart of seeds
BITS = "held-out loss (bits per byte)"


def comparison_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """A panel for each size at which networks were compared."""
    shown = fits.rankings[:MOST_PANELS]
    if not shown:
        return None
    return Figure(
        name="bits-per-byte",
        title="Networks of equal size that read different tokens",
        caption="Small points are runs, diamonds their means, the best first. An interval is that "
        "of the difference from the best (90 %): where it stays right of the dotted rule, the "
        "network is worse beyond doubt. The tokens of a patch are predicted at once.",
        description="Bits per byte at equal size: "
        + " ".join(
            f"{short_size(one.best.architecture.params)} parameters: "
            + "; ".join(
                f"{_reading(result.first, labels)} {result.first.bits_per_byte:.4f}"
                for result in one.results
            )
            + "."
            for one in shown
        ),
        chart=partial(_comparison_chart, shown, labels),
    )


def spread_figure(fits: Fits, labels: Mapping[str, str]) -> Figure | None:
    """How much seeds alone change the loss of each cell; None where nothing was repeated."""
    repeated = sorted((c for c in fits.cells if c.seeds > 1), key=_std, reverse=True)
    if not repeated:
        return None
    shown = repeated[:MOST_CELLS]
    left = len(repeated) - len(shown)
    pooled = "; ".join(f"{one.std:.2g} nats" for one in fits.noise if one.std > 0)
    return Figure(
        name="spread-of-seeds",
        title="How much seeds alone change the loss",
        caption="The loss of each run less the mean of its cell, the noisiest cell first. The grey "
        "bar is one standard deviation of the cell on each side. Filled diamonds are cells that "
        "are noisier than accident allows; the fits pool them apart."
        + (f" {left} quieter cells are left out." if left else ""),
        description=f"Losses about the means of {len(shown)} cells; standard deviation of one run "
        f"{pooled or 'zero'}; the noisiest, {_names(shown, labels)[0]}, has {_std(shown[0]):.2g}.",
        chart=partial(_spread_chart, shown, _names(shown, labels), _noisy(fits)),
    )


def _reading(cell: Cell, labels: Mapping[str, str]) -> str:
    shape = cell.architecture
    label = f"{labels[cell.data_hash]}, " if cell.data_hash in labels else ""
    patch = shape.input.tokens_per_position
    tokens = f", patches of {patch}" if patch > 1 else ""
    return f"{label}vocabulary {shape.input.vocab:,}{tokens}: {shape.depth} x {shape.width}"


def _comparison_chart(
    shown: Sequence[Ranking], labels: Mapping[str, str], page: Layout
) -> "Drawing":
    layout = page.for_panels(len(shown))
    return side_by_side([_compared(one, labels, layout.width) for one in shown], layout)


def _compared(
    one: Ranking, labels: Mapping[str, str], width: int
) -> altair.LayerChart | altair.FacetChart:
    names = _unlike([_reading(result.first, labels) for result in one.results])
    means = [_mean(*pair) for pair in zip(one.results, names, strict=True)]
    runs: list[Row] = [
        {"row": name, "bits": loss * result.first.bits_per_byte / result.first.mean}
        for result, name in zip(one.results, names, strict=True)
        for loss in result.first.losses
    ]
    frame = ends(
        [float(row[key]) for row in means for key in ("low", "high")]
        + [float(row["bits"]) for row in runs]
    )
    y, x = rows_y(names), linear_x("bits", BITS, frame)
    title = f"about {short_size(one.best.architecture.params)} parameters"
    return altair.layer(
        rows_of([{"bits": one.best.bits_per_byte}])
        .mark_rule(strokeDash=[1, 3], color="#555555")
        .encode(x=x),
        rows_of(means)
        .mark_rule(strokeWidth=2)
        .encode(x=linear_x("low", BITS, frame), x2="high:Q", y=y),
        rows_of(runs)
        .mark_point(size=18, filled=True, color="#555555", opacity=0.7)
        .encode(x=x, y=y),
        rows_of(means)
        .mark_point(shape="diamond", size=90, filled=True, color=COLOURS[0], opacity=1)
        .encode(x=x, y=y, tooltip=["row:N", "bits:Q", "low:Q", "high:Q"]),
        width=width,
        height=ROW * len(names),
        title=altair.TitleParams(title, fontSize=12),
    )


def _mean(result: CellDifference, name: str) -> Row:
    """Its mean, and the interval of its difference from the best, laid about that."""
    bits, difference = result.first.bits_per_byte, result.estimate
    best = bits - (difference.value or 0)
    return {
        "row": name,
        "bits": bits,
        "low": best + (difference.low or 0),
        "high": best + (difference.high or 0),
    }


def _unlike(names: Sequence[str]) -> list[str]:
    """The names, with a number where one comes again: each row of a chart needs its own."""
    return [
        name if name not in names[:at] else f"{name} ({names[:at].count(name) + 1})"
        for at, name in enumerate(names)
    ]


def _std(cell: Cell) -> float:
    return math.sqrt(cell.squares / (cell.seeds - 1))


def _noisy(fits: Fits) -> frozenset[Cell]:
    return frozenset(cell for noise in fits.noise for cell in noise.noisy.cells)


def _names(cells: Sequence[Cell], labels: Mapping[str, str]) -> list[str]:
    keys = [key_of(cell) for cell in cells]
    words = told_apart(keys, labels)
    names = []
    for cell, key in zip(cells, keys, strict=True):
        more = "" if words[key] == "full tables" else f", {words[key]}"
        names.append(f"depth {key.depth}, width {cell.architecture.width}{more}")
    return _unlike(names)


def _spread_chart(
    cells: Sequence[Cell], names: Sequence[str], noisy: frozenset[Cell], layout: Layout
) -> "Drawing":
    runs: list[Row] = [
        {"row": name, "difference": loss - cell.mean, "noisy": str(cell in noisy)}
        for cell, name in zip(cells, names, strict=True)
        for loss in cell.losses
    ]
    bars: list[Row] = [
        {"row": name, "low": -_std(cell), "high": _std(cell)}
        for cell, name in zip(cells, names, strict=True)
    ]
    title = "loss less the mean of its cell (nats per token)"
    frame = ends(
        [float(row["difference"]) for row in runs]
        + [float(row[end]) for row in bars for end in ("low", "high")]
    )
    y = rows_y(names)
    shape = altair.Shape(
        "noisy:N",
        scale=altair.Scale(domain=["True", "False"], range=["diamond", "circle"]),
        legend=None,
    )
    chart: altair.LayerChart | altair.FacetChart = altair.layer(
        rows_of([{"difference": 0.0}])
        .mark_rule(color="#999999")
        .encode(x=linear_x("difference", title, frame)),
        rows_of(bars)
        .mark_rule(strokeWidth=7, opacity=0.25, color="#555555")
        .encode(x=linear_x("low", title, frame), x2="high:Q", y=y),
        rows_of(runs)
        .mark_point(size=40, filled=True, color=COLOURS[0], opacity=0.85)
        .encode(x=linear_x("difference", title, frame), y=y, shape=shape),
        width=layout.for_panels(1).width,
        height=30 * len(names),
    )
    return chart


def sweep_figures(fits: Fits, labels: Mapping[str, str]) -> tuple[Figure, ...]:
    """The papers' figures from these fits; `labels` names data sets by their hash."""
    ranks, panels = rank_figure(fits, labels), size_panels(fits, labels)
    has_depths = any(len(panel.depths) > 1 for panel in panels)
    # Of one depth, the figure of ranks and widths shows the same curve.
    sizes = size_figure(panels) if panels and (has_depths or ranks is None) else None
    found = (
        sizes,
        ranks,
        redundancy_figure(fits, labels),
        position_figure(fits, labels),
        side_figure(fits, labels),
        comparison_figure(fits, labels),
        spread_figure(fits, labels),
    )
    return tuple(figure for figure in found if figure is not None)
