"""A chart or page written to a file: SVG, PNG, or a page that opens without a network."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import altair

    Drawing: TypeAlias = (
        altair.LayerChart | altair.FacetChart | altair.VConcatChart | altair.ConcatChart
    )

FORMATS = (".svg", ".png", ".html")


def check_chart_file(file: Path) -> None:
    """Refuse a file that no chart can be written to, before any work is done."""
    if file.suffix.lower() not in FORMATS:
        raise ValueError(f"{file} ends in {file.suffix or 'nothing'!r}; use {', '.join(FORMATS)}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name a file in it")
    if not file.parent.is_dir():
        raise ValueError(f"{file} is in a folder that does not exist; make {file.parent} first")


def save_chart(chart: "Drawing", file: Path) -> None:
    """Write the chart in the format that the file name asks for; the file appears complete."""
    with _finished_at(file) as unfinished:
        if unfinished.suffix == ".html":
            chart.save(str(unfinished), inline=True)  # all scripts inside the file
        else:
            chart.save(str(unfinished), ppi=200)


def write_page(page: str, file: Path) -> None:
    """Write a page; the file appears complete."""
    with _finished_at(file) as unfinished:
        unfinished.write_text(page, encoding="utf-8")


@contextlib.contextmanager
def _finished_at(file: Path) -> Iterator[Path]:
    """A place beside `file` to write to, which then takes its name."""
    check_chart_file(file)
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".archfit-") as folder:
            unfinished = Path(folder) / f"chart{file.suffix.lower()}"
            yield unfinished
            os.replace(unfinished, file)
    except OSError as problem:
        raise ValueError(
            f"{file} cannot be written ({problem.strerror}); name another"
        ) from problem
