"""The figures of a sweep: whichever its records support."""

from collections.abc import Mapping

from archfit.fit.fitted import Fits
from archfit.report.comparison_chart import comparison_figure, spread_figure
from archfit.report.document import Figure
from archfit.report.rank_chart import position_figure, rank_figure
from archfit.report.redundancy_chart import redundancy_figure
from archfit.report.side_chart import side_figure
from archfit.report.size_chart import size_figure, size_panels


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
