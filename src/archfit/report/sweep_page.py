"""The report of a sweep as one page that opens without a network, and its charts beside it."""

import json
from collections.abc import Sequence
from pathlib import Path

from archfit.fit.conclusions import findings
from archfit.fit.fitted import Fits
from archfit.report.chart_file import save_chart, write_page
from archfit.report.provenance import Origin, commands, provenance, training_hours
from archfit.report.sweep_figures import sweep_figures, titled_chart
from archfit.report.sweep_look import NARROW, WIDE, Figure, Layout
from archfit.report.sweep_tables import numeric_columns, sweep_tables
from archfit.report.vega import DRAW, script_hash, vega_embed
from archfit.spec import RunRecord

CHARTS = (".svg", ".png")
PAGE = ".html"
NO_QUESTION = "What do these runs say?"


def check_report_file(file: Path) -> None:
    """Refuse a file that is no page before any work is done."""
    if file.suffix.lower() != PAGE:
        raise ValueError(f"{file} ends in {file.suffix or 'nothing'!r}; a report ends in {PAGE}")


def write_report(
    fits: Fits, records: Sequence[RunRecord], origins: Sequence[Origin], file: Path, version: str
) -> dict[str, list[Path]]:
    """Write the page and each of its charts as SVG and PNG; the files of each figure by name.

    The page comes last, so that it is there only when all is.
    """
    check_report_file(file)
    labels = {name: label for origin in origins for name, label in origin.labels.items()}
    figures = sweep_figures(fits, labels)
    page = _page(fits, records, origins, figures, file=file.name, version=version)
    written: dict[str, list[Path]] = {}
    for figure in figures:
        chart = titled_chart(figure)
        written[figure.name] = [file.with_name(f"{file.stem}-{figure.name}{e}") for e in CHARTS]
        for path in written[figure.name]:
            save_chart(chart, path)
    write_page(page, file)
    return written


def _page(
    fits: Fits,
    records: Sequence[RunRecord],
    origins: Sequence[Origin],
    figures: Sequence[Figure],
    *,
    file: str,
    version: str,
) -> str:
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    labels = {name: label for origin in origins for name, label in origin.labels.items()}
    questions = list(dict.fromkeys(one.question for one in origins if one.question))
    # Our own scripts; the page lets no other run. Words from files are in none of them.
    bundle = f"{vega_embed()}\n{DRAW}"
    return (
        Environment(loader=PackageLoader("archfit.report"), autoescape=True)
        .get_template("sweep.html")
        .render(
            questions=questions or [NO_QUESTION],
            findings=findings(fits),
            figures=figures,
            tables=[(table, numeric_columns(table)) for table in sweep_tables(fits, labels)],
            provenance=[(table, numeric_columns(table)) for table in provenance(records, origins)],
            commands=commands(origins, file),
            runs=fits.runs,
            hours=training_hours(records),
            stem=Path(file).stem,
            version=version,
            charts=Markup(_specs(figures)),
            bundle=Markup(bundle),
            bundle_hash=script_hash(bundle),
        )
    )


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
