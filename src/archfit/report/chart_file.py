"""A chart written to a file: SVG, PNG, or a page that opens without a network."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair

FORMATS = (".svg", ".png", ".html")


def check_chart_file(file: Path) -> None:
    """Refuse a file that no chart can be written to, before any work is done."""
    if file.suffix.lower() not in FORMATS:
        raise ValueError(f"{file} ends in {file.suffix or 'nothing'!r}; use {', '.join(FORMATS)}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name a file in it")
    if not file.parent.is_dir():
        raise ValueError(f"{file} is in a folder that does not exist; make {file.parent} first")


def save_chart(chart: "altair.LayerChart | altair.FacetChart", file: Path) -> None:
    """Write the chart in the format that the file name asks for; the file appears complete."""
    check_chart_file(file)
    try:
        _save(chart, file)
    except OSError as problem:
        raise ValueError(
            f"{file} cannot be written ({problem.strerror}); name another"
        ) from problem


def _save(chart: "altair.LayerChart | altair.FacetChart", file: Path) -> None:
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".archfit-") as folder:
        finished = Path(folder) / f"chart{file.suffix.lower()}"
        if finished.suffix == ".html":
            chart.save(str(finished), inline=True)  # all scripts inside the file
        else:
            chart.save(str(finished), ppi=200)
        os.replace(finished, file)
