"""A document as a page and its charts as files: complete or not there, and words stay words."""

import re
from pathlib import Path

import pytest

from archfit.advise.planner import make_plan
from archfit.audit.auditor import audit_model
from archfit.audit.zoo import zoo_models
from archfit.report.audit_document import gallery_document
from archfit.report.document import Command, Document, Section, Table
from archfit.report.page import fragment, page_of, save_figure, save_page
from archfit.report.plan_document import plan_document
from archfit.report.terminal import MORE, text_of
from tests_plans import question

HOSTILE = "<script>alert(1)</script>{{ 7*7 }}"
NUMBERS = Table(title=HOSTILE, columns=("name", "size"), rows=((HOSTILE, "1,000"), ("b", "-2")))
SECTION = Section(
    title=HOSTILE, sentences=(HOSTILE, Command("archfit plan --params 1M")), tables=(NUMBERS,)
)
DOCUMENT = Document(title="t", headline="The answer.", sections=(SECTION,), data={})


def test_words_are_shown_as_words_wherever_they_stand() -> None:
    for html in (page_of(DOCUMENT), fragment([SECTION])):
        assert "alert(1)" in html
        assert "<script>alert" not in html
        assert "{{ 7*7 }}" in html
        assert '<pre tabindex="0">archfit plan --params 1M</pre>' in html


def test_numbers_stand_on_the_right_and_words_do_not() -> None:
    assert NUMBERS.numeric == {1}
    assert '<td class="number">1,000</td>' in fragment([SECTION])


def test_why_is_left_out_unless_asked_for_and_details_always() -> None:
    parts = (
        Section(sentences=("first",)),
        Section(title="Why", sentences=("second",), is_why=True),
        Section(title="Detail", sentences=("third",), is_detail=True),
    )
    document = Document(title="t", headline="Yes.", sections=parts, data={})
    assert text_of(document, why=False).splitlines() == ["Yes.", "  first", MORE]
    assert text_of(document).splitlines() == ["Yes.", "  first", "Why", "  second"]
    page = page_of(document)
    assert all(word in page for word in ("first", "second", "third"))


def test_a_table_on_a_terminal_has_the_columns_that_it_has_room_for() -> None:
    table = Table(title="t", columns=("a", "b", "c"), rows=(("1", "2", "3"),), narrow=("a", "c"))
    assert (table.narrowed().columns, table.narrowed().rows) == (("a", "c"), (("1", "3"),))


def test_the_gallery_page_is_one_file_that_asks_for_no_other(tmp_path: Path) -> None:
    file = tmp_path / "gallery.html"
    models = [audit_model(model) for model in zoo_models()]
    save_page(gallery_document(models, "archfit <test>"), file)
    page = file.read_text()
    assert "archfit &lt;test&gt;" in page
    assert ">176,247<" in page  # BLOOM, in millions
    own = page.split("<script>")[0]
    findings = sum(len(one.findings) for one in models)
    assert own.count("<tr>") == 3 + 6 + 169 + findings
    assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=", own)
    assert "<script src" not in page
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_a_chart_is_written_in_the_format_of_its_name(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"plan.{ending}"
    save_figure(plan_document(make_plan(question())).figure("depths"), file)
    starts = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}
    assert file.read_bytes().lstrip().startswith(starts[ending])


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in '\.txt'"):
        save_page(DOCUMENT, tmp_path / "page.txt")
    with pytest.raises(ValueError, match="does not exist"):
        save_page(DOCUMENT, tmp_path / "no" / "page.html")
    assert list(tmp_path.iterdir()) == []
