"""A document as one page that opens without a network, charts as files beside it, and the version
of archfit that a page says made it."""

import base64
import hashlib
import io
import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archfit import __version__
from archfit.report.document import NARROW, WIDE, Command, Document, Figure, Layout, Section
from archfit.spec.files import write_whole

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from archfit.report.document import Drawing

CHARTS = (".svg", ".png")
PAGE = ".html"
LAYOUTS = {"wide": WIDE, "narrow": NARROW}
TEMPLATES = Path(__file__).parent / "templates"
PACKAGE = Path(__file__).parents[1]


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
    check_chart_file(file)
    if file.suffix.lower() == PAGE:
        alone = Section(figures=(figure,))
        return save_page(Document(title=figure.title, sections=(alone,), data={}), file)
    is_png = file.suffix.lower() == ".png"
    drawn = io.BytesIO() if is_png else io.StringIO()
    titled_chart(figure).save(drawn, format="png" if is_png else "svg", ppi=200)
    content = drawn.getvalue()
    return write_whole(file, content if isinstance(content, bytes) else content.encode())


def save_page(document: Document, file: Path) -> None:
    """Write the page of a document; the file appears complete."""
    check_page_file(file)
    write_whole(file, page_of(document).encode())


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
    script = f"{vega_embed()}\n{_static('charts.js')}" if document.figures else ""
    if any(table.sortable for section in document.sections for table in section.tables):
        script += _static("tables.js")
    # What a content security policy calls our script.
    name = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    specs = {
        figure.name: {name: spec_of(figure, layout) for name, layout in LAYOUTS.items()}
        for figure in document.figures
    }
    # JSON that no word in it can leave: it holds no `<`.
    charts = json.dumps(specs, allow_nan=False, sort_keys=True).replace("<", "\\u003c")
    look = _static("look.css")
    ours = {"charts": Markup(charts), "look": Markup(look), "script": Markup(script)}
    template = templates().get_template("page.html")
    return str(template.render(document=document, script_hash=f"sha256-{name}", **ours))


def _static(name: str) -> str:
    return (TEMPLATES / "static" / name).read_text(encoding="utf-8")


def fragment(sections: Sequence[Section]) -> "Markup":
    """Sections as HTML to be put into any page, with an empty element for each chart."""
    from markupsafe import Markup

    parts = templates().get_template("parts.html").module
    return Markup("\n").join(parts.section_of(section) for section in sections)  # type: ignore[attr-defined]


@cache
def vega_embed() -> str:
    """Vega, Vega-Lite and their embedding as one script, from the package that draws the files."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


@cache
def templates() -> "Environment":
    """What makes pages: words are escaped, and a name that is not given is a mistake."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("archfit.report")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    made.tests["command"] = lambda sentence: isinstance(sentence, Command)
    return made


def spec_of(figure: Figure, layout: Layout) -> dict[str, Any]:
    """What Vega-Lite draws in a page, which says title and grammar itself."""
    spec: dict[str, Any] = figure.chart(layout).to_dict()
    return {name: part for name, part in spec.items() if name not in ("$schema", "title")}


def version_line() -> str:
    """Version and commit, `archfit 0.1.0 (commit 1a2b3c4)`."""
    return f"archfit {__version__} (commit {commit()})"


def commit() -> str:
    """The commit this code is from: of the checkout it lies in, or written into its wheel."""
    checkout = PACKAGE.parents[1]
    if (checkout / "pyproject.toml").exists() and shutil.which("git"):
        is_clean, _ = _git(checkout, "diff", "--quiet", "HEAD", "--", "src")  # docs are no code
        is_known, name = _git(checkout, "rev-parse", "--short=12", "HEAD")
        return f"{name}{'' if is_clean else '-dirty'}" if is_known else "unknown"
    written = PACKAGE / "resources" / "commit.txt"
    return written.read_text().strip()[:12] if written.exists() else "unknown"


def _git(checkout: Path, *words: str) -> tuple[bool, str]:
    """Whether it went well, and what it said."""
    said = subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True)
    return said.returncode == 0, said.stdout.strip()
