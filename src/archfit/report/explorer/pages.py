"""The pages as HTML, and the charts that they load: documents of the other rooms, in a frame.

Every state has an address, and each page works without scripts. Titles of charts stand in the page,
where they wrap and are read aloud; the drawings go without.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from archfit import __version__
from archfit.advise.repairs import plan_command
from archfit.audit.auditor import AuditResult, audit_model, checked_claims
from archfit.audit.zoo import zoo_model, zoo_models, zoo_names
from archfit.fit.atlas import read_atlas
from archfit.report import audit_document
from archfit.report.atlas_document import OF_A_KIND, atlas_document
from archfit.report.document import Document, Figure, Section, written
from archfit.report.explorer import api
from archfit.report.explorer.api import Pairs, Question
from archfit.report.page import LAYOUTS, fragment, spec_of, templates
from archfit.report.plan_document import plan_document, theory_figure
from archfit.spec.errors import one_line, refuse_if

STATIC = f"static/{__version__}"  # where scripts and sheets are
FORMS: dict[str, dict[str, str]] = written("pages")
Json = dict[str, Any]  # of a grammar that others define


def _fields(query: Pairs, form: str) -> dict[str, str]:
    """What was sent, with the defaults for the rest, however wrong the form is."""
    sent = dict(query)
    return {name: sent.get(name, default).strip() for name, default in FORMS[form].items()}


def _checked_fields(query: Pairs, form: str) -> dict[str, str]:
    """The same of a form that is right."""
    names = [name for name, _ in query]
    refuse_if(len(set(names)) < len(names), "field-twice")
    if unknown := [name for name in names if name not in FORMS[form]]:
        raise ValueError(f"{unknown[0][:40]!r} is no field; use {', '.join(FORMS[form])}")
    return _fields(query, form)


def _plan_query(query: Pairs) -> Pairs:
    """The parameters of the API that the fields of the plan say."""
    fields = _checked_fields(query, "plan")
    kind, budget = fields.pop("of"), fields.pop("budget")
    words = {"kind": repr(kind[:40]), "budgets": ", ".join(FORMS["budgets"])}
    refuse_if(kind not in FORMS["budgets"], "no-budget", **words)
    return [(name, text) for name, text in ({kind: budget} | fields).items() if text]


def _plan_page(asked: Question, values: Json) -> None:
    """The plan for what the controls say."""
    query = _plan_query(asked.query)
    plan = api.plan_of(query)
    told = [part for part in plan_document(plan).sections if not part.is_detail]
    values |= {
        "plan": plan,
        "said": fragment([part for part in told if not part.is_why]),
        "why": fragment([part for part in told if part.is_why]),
        "command": plan_command(plan.request),
        "api": f"api/plan?{urlencode(query)}",
    }


def _audit_page(asked: Question, values: Json) -> None:
    """The findings for a name of the table or a pasted config."""
    if asked.body:
        values["form"]["config"] = asked.body.decode(errors="replace")
    values |= {"names": sorted(zoo_names().values(), key=str.casefold), "model": None}
    name, config = values["form"]["name"], values["form"]["config"]
    _checked_fields(asked.query, "audit")
    refuse_if(bool(name and config), "name-and-config")
    if name or config:
        audited = audit_model(zoo_model(name)) if name else api.audited_config(config.encode())
        values |= {
            "model": audited.model,
            "verdict": audit_document.headline(audited),
            "sections": fragment(audit_document.model_sections(audited)),
            "api": f"api/audit?{urlencode({'name': name})}" if name else "",
        }


COLUMNS = audit_document.models_table(()).columns
WORDS = ("model", "modality", "findings")  # columns; the others hold numbers
SLUGS = tuple(column.replace(" ", "-") for column in COLUMNS)


def _gallery_page(asked: Question, values: Json) -> None:
    """The published models that match, sorted by a column; what is not known comes last."""
    models = _published_models()
    values |= {
        "columns": list(zip(COLUMNS, SLUGS, strict=True)),
        "words": WORDS,
        "claims": checked_claims(models),
        "summary": audit_document.gallery_summary(models),
        "total": len(models),
    }
    fields = _checked_fields(asked.query, "gallery")
    find, sort = fields["find"].casefold(), fields["sort"]
    refuse_if(sort not in SLUGS, "unknown-sort", sort=repr(sort[:40]), columns=", ".join(SLUGS))
    at = SLUGS.index(sort)

    def key(row: Json) -> tuple[float, str]:
        text = row["columns"][at]
        return 0 if COLUMNS[at] in WORDS else float(text.replace(",", "")), text.casefold()

    rows: list[Json] = []
    for each, row in zip(models, audit_document.models_table(models).rows, strict=True):
        columns = [*row[:-1], " ".join(found.id for found in each.findings)]  # there as marks
        if find in " ".join(columns).casefold():
            rows.append({"cells": row[:-1], "findings": each.findings, "columns": columns})
    known = [row for row in rows if row["columns"][at]]
    unknown = [row for row in rows if not row["columns"][at]]
    values["rows"] = sorted(known, key=key, reverse=bool(fields["down"])) + unknown


@cache
def _published_models() -> tuple[AuditResult, ...]:
    return tuple(audit_model(model) for model in zoo_models())


@cache
def _atlas() -> tuple[Document, dict[str, Section]]:
    """The document, and its sections that are about one kind of data."""
    document = atlas_document(read_atlas())
    of_kinds = {
        figure.name.removeprefix(OF_A_KIND): part
        for part in document.sections
        for figure in part.figures
        if figure.name.startswith(OF_A_KIND)
    }
    return document, of_kinds


def _kind(query: Pairs) -> str:
    """The kind that the form says; without one, the first."""
    kinds = _atlas()[1]
    kind = _checked_fields(query, "atlas")["kind"] or next(iter(kinds), "")
    refuse_if(kind not in kinds, "no-kind", kind=repr(kind[:40]), kinds=", ".join(kinds))
    return kind


def _atlas_page(asked: Question, values: Json) -> None:
    """What is known of a kind of data, above tables of all."""
    document, kinds = _atlas()
    # Charts are drawn by scripts of the page, in places of its own.
    others = [replace(part, figures=()) for part in document.sections if part not in kinds.values()]
    values |= {"kinds": [*kinds], "lead": document.headline, "tables": fragment(others)}
    values |= {"kind": "", "about": ""}
    kind = _kind(asked.query)
    values |= {"kind": kind, "about": " ".join(kinds[kind].sentences)}


# The name of form and template, and what adds to its values, those first that a page with a problem
# shows, too.
PAGES: dict[str, tuple[str, Callable[[Question, Json], None]]] = {
    "/": ("plan", _plan_page),
    "/audit": ("audit", _audit_page),
    "/gallery": ("gallery", _gallery_page),
    "/atlas": ("atlas", _atlas_page),
}


def page(asked: Question) -> Response:
    """The page; what is wrong with the request stands above its form."""
    name, fill = PAGES[asked.path]
    values: Json = {"version": __version__, "static": STATIC, "budgets": FORMS["budgets"]}
    values |= {"problem": "", "form": _fields(asked.query, name)}
    try:
        fill(asked, values)
    except ValueError as problem:
        values["problem"] = one_line(str(problem))
    text = templates().get_template(f"explorer/{name}.html").render(values)
    return api.response(text, "text/html", 400 if values["problem"] else 200)


# The figure of each name for a query; "depth" is that of the kind asked for.
FIGURES: dict[str, Callable[[Pairs], Figure]] = {
    "depths": lambda query: plan_document(api.plan_of(_plan_query(query))).figure("depths"),
    "bounds": lambda query: theory_figure(api.plan_of(_plan_query(query))),
    "models": lambda _: audit_document.gallery_figure(_published_models()),
    "depth": lambda query: _atlas()[0].figure(f"{OF_A_KIND}{_kind(query)}"),
    "best-depth": lambda _: _atlas()[0].figure("best-depth"),
    "vocabularies": lambda _: _atlas()[0].figure("vocabularies"),
}


def chart(asked: Question) -> Json:
    """The chart at /chart/LAYOUT/NAME: what is said of it, and its drawing."""
    layout, name = asked.path.split("/")[2:]
    figure = FIGURES[name](asked.query)
    words = {"title": figure.title, "caption": figure.caption, "description": figure.description}
    return {**words, "spec": spec_of(figure, LAYOUTS[layout])}
