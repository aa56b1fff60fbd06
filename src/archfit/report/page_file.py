"""A page with figures as one file that opens without a network, and its charts beside it."""

import json
from collections.abc import Sequence
from pathlib import Path

from archfit.report.chart_file import save_chart
from archfit.report.sweep_figures import titled_chart
from archfit.report.sweep_look import NARROW, WIDE, Figure, Layout
from archfit.report.vega import DRAW, script_hash, vega_embed

CHARTS = (".svg", ".png")
PAGE = ".html"


def check_report_file(file: Path) -> None:
    """Refuse a file that is no page before any work is done."""
    if file.suffix.lower() != PAGE:
        raise ValueError(f"{file} ends in {file.suffix or 'nothing'!r}; a report ends in {PAGE}")


def rendered(template: str, figures: Sequence[Figure], words: dict[str, object]) -> str:
    """The page; words come from anywhere, and are shown as words."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    # Our own scripts; the page lets no other run. Words from files are in none of them.
    bundle = f"{vega_embed()}\n{DRAW}"
    page: str = (
        Environment(loader=PackageLoader("archfit.report"), autoescape=True)
        .get_template(template)
        .render(
            **words,
            figures=figures,
            charts=Markup(_specs(figures)),
            bundle=Markup(bundle),
            bundle_hash=script_hash(bundle),
        )
    )
    return page


def save_figures(figures: Sequence[Figure], file: Path) -> dict[str, list[Path]]:
    """Each chart as SVG and PNG beside the page `file`; the files of each by its name."""
    written: dict[str, list[Path]] = {}
    for figure in figures:
        chart = titled_chart(figure)
        written[figure.name] = [file.with_name(f"{file.stem}-{figure.name}{e}") for e in CHARTS]
        for path in written[figure.name]:
            save_chart(chart, path)
    return written


def _specs(figures: Sequence[Figure]) -> str:
    """The charts as JSON that no word in it can leave: it holds no `<`."""
    specs = {
        figure.name: {"wide": _spec(figure, WIDE), "narrow": _spec(figure, NARROW)}
        for figure in figures
    }
    return json.dumps(specs, allow_nan=False, sort_keys=True).replace("<", "\\u003c")


def _spec(figure: Figure, layout: Layout) -> dict[str, object]:
    spec: dict[str, object] = figure.drawn(layout).to_dict()
    del spec["$schema"]  # an address; the page names the grammar itself
    return spec
