"""`archfit report`, run as a user runs it."""

import base64
import hashlib
import json
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from archfit.sweep.folder import sweep_json
from archfit.sweep.sweep import Corpus, Sweep
from tests_curves import DATA, OTHER_DATA, write_runs
from tests_reports import depth_runs
from tests_said import Said, said

FIGURES = ["loss-against-size", "bits-per-byte", "spread-of-seeds"]
HOSTILE = "</script><script>alert(1)</script><!--<script>'\"&{{ 7*7 }}"


def archfit(*arguments: str | Path) -> Said:
    return said("report", *arguments)


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the texts of its scripts and headings."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and data.strip():
            self.texts.append((self.found[-1][0], data))


@dataclass(frozen=True)
class Made:
    """A report of a sweep whose every word is hostile."""

    said: Said
    page: str
    folder: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    first = depth_runs()
    second = [replace(one, spec=replace(one.spec, data_hash=OTHER_DATA)) for one in first]
    records = [*first, *second]
    runs = write_runs(tmp_path_factory.mktemp("runs") / "<b>runs & more", records)
    places = [
        Corpus(hash=name, label=label, kind=HOSTILE, vocab=2000, folder=HOSTILE)
        for name, label in ((DATA, HOSTILE), (OTHER_DATA, f"<b>{HOSTILE}"))
    ]
    sweep = Sweep(
        name=HOSTILE,
        scale=HOSTILE,
        question=HOSTILE,
        data=tuple(places),
        specs=tuple(record.spec for record in records),
    )
    (runs / "sweep.json").write_text(sweep_json(sweep))
    out = tmp_path_factory.mktemp("out")
    said = archfit(runs, "--out", out / "it.html", "--json")
    return Made(said=said, page=(out / "it.html").read_text(), folder=out)


def test_the_document_names_the_page_and_every_chart(made: Made) -> None:
    document = made.said.document()
    assert document["file"] == str(made.folder / "it.html")
    figures = document["figures"]
    assert isinstance(figures, list)
    assert [figure["name"] for figure in figures] == FIGURES
    named = {Path(path).name for figure in figures for path in figure["files"]}
    assert named | {"it.html"} == {path.name for path in made.folder.iterdir()}
    assert (made.folder / "it-spread-of-seeds.png").read_bytes().startswith(b"\x89PNG")
    assert (made.folder / "it-spread-of-seeds.svg").read_text().startswith("<svg")


def test_words_of_files_are_shown_and_never_run(made: Made) -> None:
    elements = Elements(made.page)
    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "charts"}, {}]
    assert {tag for tag, _ in elements.found} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "ul", "li"),
        *("figure", "div", "figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td"),
        *("pre", "code", "script", "noscript", "main"),
    }
    assert "<h1>&lt;/script&gt;&lt;script&gt;alert(1)" in made.page
    assert "{{ 7*7 }}" in made.page
    charts = [path.read_text() for path in made.folder.glob("*.svg")]
    assert any("alert(1)" in chart for chart in charts)
    assert not any("<script" in chart for chart in charts)


def test_the_page_lets_only_its_own_script_run(made: Made) -> None:
    script = made.page.split("<script>")[-1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'"
    assert f'content="{policy};' in made.page
    assert "alert" not in script


def test_the_page_asks_for_nothing_from_elsewhere(made: Made) -> None:
    own = made.page.split("<script>", maxsplit=1)[0]  # without the library, which the policy holds
    assert "http" not in own.replace('http-equiv="Content-Security-Policy"', "")
    assert not re.search(r"\b(?:src|href|url)\s*[=(]", own)


def test_the_page_has_the_answer_the_figures_and_how_to_reproduce_them(made: Made) -> None:
    elements = Elements(made.page)
    headings = [text for tag, text in elements.texts if tag in ("h2", "h3")]
    assert headings[0] == "Depth against size"
    assert "Depth 12 overtakes depth 6 (data 01234567, vocabulary 2,000) at " in made.page
    described = [a for tag, a in elements.found if tag == "div" and a.get("role") == "img"]
    assert [one["id"] for one in described] == FIGURES
    assert all(re.search(r"\d", str(one["aria-label"])) for one in described)
    assert DATA in made.page
    assert "--out it.html" in made.page
    charts = next(text for tag, text in elements.texts if tag == "script")
    assert json.loads(charts).keys() == set(FIGURES)


def test_what_cannot_be_reported_is_one_sentence_and_nothing_is_written(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs", depth_runs()[:2])
    out = tmp_path / "out"
    out.mkdir()
    for arguments, words in (
        ((runs, "--out", out / "it.pdf"), "ends in '.pdf'; a report ends in .html"),
        ((tmp_path / "missing", "--out", out / "it.html"), "is no folder"),
        ((out, "--out", out / "it.html"), "has no finished run"),
        ((runs, "--out", out / "it.html"), "intervals need 4 runs that repeat"),
        ((runs, "--out", out / "no" / "it.html"), "does not exist"),
    ):
        assert words in archfit(*arguments).refusal()
    assert list(out.iterdir()) == []
