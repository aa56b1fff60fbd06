"""The page of the atlas: one kind of data at a time, and what all of them say."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

from archfit.fit.atlas import read_atlas
from archfit.report.atlas_document import OF_A_KIND, atlas_document
from archfit.report.document import NARROW, WIDE, Document, Section
from archfit.report.explorer.exchange import ExplorerRequest, Reply
from archfit.report.explorer.pages import chart_spec, page_reply, read_form
from archfit.report.page import fragment

FIELDS = {"kind": ""}


@cache
def _document() -> Document:
    return atlas_document(read_atlas())


@cache
def _sections_of_kinds() -> dict[str, Section]:
    return {
        figure.name.removeprefix(OF_A_KIND): part
        for part in _document().sections
        for figure in part.figures
        if figure.name.startswith(OF_A_KIND)
    }


def _kind(request: ExplorerRequest) -> str:
    """The kind that the form says; without one, the first."""
    form, kinds = read_form(request.query, FIELDS), _sections_of_kinds()
    form.check()
    kind = form.fields["kind"] or next(iter(kinds), "")
    if kind not in kinds:
        raise ValueError(f"kind={kind[:40]!r} is no kind of the atlas; use {', '.join(kinds)}")
    return kind


def atlas_page(request: ExplorerRequest) -> Reply:
    """What is known of a kind, above tables of all."""
    document, kinds = _document(), _sections_of_kinds()
    # Charts are drawn by scripts of the page, in places of its own.
    others = [replace(part, figures=()) for part in document.sections if part not in kinds.values()]
    values = {"kinds": [*kinds], "lead": document.headline, "tables": fragment(others)}
    try:
        kind = _kind(request)
    except ValueError as problem:
        return page_reply("atlas.html", values | {"kind": "", "about": ""}, problem)
    about = " ".join(kinds[kind].sentences)
    return page_reply("atlas.html", values | {"kind": kind, "about": about})


def _chart(name: str, request: ExplorerRequest, *, is_narrow: bool) -> object:
    """A figure of the atlas, or where its name is only a beginning, that of the kind asked for."""
    kind = _kind(request)
    figure = _document().figure(f"{name}{kind}" if name == OF_A_KIND else name)
    return {
        "title": figure.title,
        "subtitle": [figure.caption],
        "description": figure.description,
        "specs": [chart_spec(figure.chart(NARROW if is_narrow else WIDE))],
    }


ATLAS_CHARTS: dict[str, Callable[[ExplorerRequest], object]] = {
    f"/chart/{layout}/{place}": partial(_chart, name, is_narrow=layout == "narrow")
    for layout in ("wide", "narrow")
    for place, name in (
        ("depth", OF_A_KIND),
        ("best-depth", "best-depth"),
        ("vocabularies", "vocabularies"),
    )
}
