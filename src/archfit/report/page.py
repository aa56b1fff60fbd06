"""A document as one page that opens without a network, and charts as files beside it."""

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archfit.report.document import NARROW, WIDE, Command, Document, Figure, Section
from archfit.spec.files import partial_folder

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from archfit.report.document import Drawing

CHARTS = (".svg", ".png")
PAGE = ".html"
# Charts stand in a JSON element of the page, each for a wide and for a narrow window. Expressions
# are interpreted (`ast`), so that no page need allow text to become code.
DRAW = """
const specs = JSON.parse(document.getElementById("charts").textContent);
const layout = matchMedia("(max-width: 700px)").matches ? "narrow" : "wide";
for (const [name, spec] of Object.entries(specs))
  vegaEmbed(document.getElementById(name), spec[layout],
    {mode: "vega-lite", actions: false, renderer: "svg", ast: true});
"""


def check_chart_file(file: Path) -> None:
    """Refuse a file that no chart can be written to, before any work is done."""
    formats = (*CHARTS, PAGE)
    if file.suffix.lower() not in formats:
        raise ValueError(f"{file} ends in {file.suffix or 'nothing'!r}; use {', '.join(formats)}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name a file in it")
    if not file.parent.is_dir():
        raise ValueError(f"{file} is in a folder that does not exist; make {file.parent} first")


def check_page_file(file: Path) -> None:
    """Refuse a file that is no page before any work is done."""
    if file.suffix.lower() != PAGE:
        raise ValueError(f"{file} ends in {file.suffix or 'nothing'!r}; a report ends in {PAGE}")
    check_chart_file(file)


def save_figure(figure: Figure, file: Path) -> None:
    """Write one chart in the format that the file name asks for; the file appears complete."""
    if file.suffix.lower() == PAGE:
        alone = Section(figures=(figure,))
        return save_page(Document(title=figure.title, sections=(alone,), data={}), file)
    with _finished_at(file) as unfinished:
        titled_chart(figure).save(str(unfinished), ppi=200)
    return None


def save_page(document: Document, file: Path) -> None:
    """Write the page of a document; the file appears complete."""
    with _finished_at(file) as unfinished:
        unfinished.write_text(page_of(document), encoding="utf-8")


def save_report(document: Document, file: Path) -> dict[str, list[Path]]:
    """Write each chart as SVG and PNG, then the page; the files of each figure by its name.

    The page comes last, so that it is there only when all is.
    """
    written = {}
    for figure in document.figures:
        written[figure.name] = [file.with_name(f"{file.stem}-{figure.name}{e}") for e in CHARTS]
        for path in written[figure.name]:
            save_figure(figure, path)
    save_page(document, file)
    return written


def titled_chart(figure: Figure) -> "Drawing":
    """The chart as it stands alone: with what it shows and a title, if it brings none itself."""
    import altair

    chart = figure.chart(WIDE).properties(description=figure.description)
    if chart.title is not altair.Undefined:
        return chart
    title = altair.TitleParams(figure.title, anchor="start", fontSize=15, offset=12)
    return chart.properties(title=title)


def page_of(document: Document) -> str:
    """The whole page; words come from anywhere, and are shown as words."""
    from markupsafe import Markup

    # Our own scripts; the page lets no other run. Words from files are in none of them.
    script = f"{vega_embed()}\n{DRAW}" if document.figures else ""
    if any(table.sortable for section in document.sections for table in section.tables):
        script += (Path(__file__).parent / "templates" / "tables.js").read_text(encoding="utf-8")
    charts = Markup(_chart_specs(document.figures))
    scripts = {"script": Markup(script), "script_hash": script_hash(script)}
    template = _templates().get_template("page.html")
    page: str = template.render(document=document, charts=charts, **scripts)
    return page


def fragment(sections: Sequence[Section]) -> "Markup":
    """Sections as HTML to be put into any page, with an empty element for each chart."""
    from markupsafe import Markup

    parts = _templates().get_template("parts.html").module
    return Markup("\n").join(parts.section_of(section) for section in sections)  # type: ignore[attr-defined]


@cache
def vega_embed() -> str:
    """Vega, Vega-Lite and their embedding as one script, from the package that draws the files."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script


def script_hash(script: str) -> str:
    """What a content security policy calls this script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("archfit.report"), autoescape=True, undefined=StrictUndefined
    )
    made.tests["command"] = lambda sentence: isinstance(sentence, Command)
    return made


def _chart_specs(figures: Sequence[Figure]) -> str:
    """The charts as JSON that no word in it can leave: it holds no `<`."""
    specs: dict[str, dict[str, Any]] = {}
    for figure in figures:
        both = {"wide": figure.chart(WIDE).to_dict(), "narrow": figure.chart(NARROW).to_dict()}
        for spec in both.values():
            del spec["$schema"]  # an address; the page names the grammar itself
        specs[figure.name] = both
    return json.dumps(specs, allow_nan=False, sort_keys=True).replace("<", "\\u003c")


@contextlib.contextmanager
def _finished_at(file: Path) -> Iterator[Path]:
    """A place beside `file` to write to, which then takes its name."""
    check_chart_file(file)
    try:
        with partial_folder(file) as folder:
            unfinished = folder / f"chart{file.suffix.lower()}"
            yield unfinished
            os.replace(unfinished, file)
    except OSError as problem:
        raise ValueError(
            f"{file} cannot be written ({problem.strerror}); name another"
        ) from problem
