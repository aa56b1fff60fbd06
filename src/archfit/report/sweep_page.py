"""The report of a sweep as one page, and its charts beside it."""

from collections.abc import Sequence
from pathlib import Path

from archfit.fit.conclusions import findings
from archfit.fit.fitted import Fits
from archfit.report.chart_file import write_page
from archfit.report.page_file import check_report_file, rendered, save_figures
from archfit.report.provenance import Origin, commands, provenance, training_hours
from archfit.report.sweep_figures import sweep_figures
from archfit.report.sweep_tables import numeric_columns, sweep_tables
from archfit.spec import RunRecord

NO_QUESTION = "What do these runs say?"


def write_report(
    fits: Fits, records: Sequence[RunRecord], origins: Sequence[Origin], file: Path, version: str
) -> dict[str, list[Path]]:
    """Write the page and each of its charts as SVG and PNG; the files of each figure by name.

    The page comes last, so that it is there only when all is.
    """
    check_report_file(file)
    labels = {name: label for origin in origins for name, label in origin.labels.items()}
    figures = sweep_figures(fits, labels)
    questions = list(dict.fromkeys(one.question for one in origins if one.question))
    words: dict[str, object] = {
        "questions": questions or [NO_QUESTION],
        "findings": findings(fits),
        "tables": [(table, numeric_columns(table)) for table in sweep_tables(fits, labels)],
        "provenance": [(table, numeric_columns(table)) for table in provenance(records, origins)],
        "commands": commands(origins, file.name),
        "runs": fits.runs,
        "hours": training_hours(records),
        "stem": file.stem,
        "version": version,
    }
    page = rendered("sweep.html", figures, words)
    written = save_figures(figures, file)
    write_page(page, file)
    return written
