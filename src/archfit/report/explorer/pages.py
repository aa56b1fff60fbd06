"""The pages as HTML: every state has an address, and each works without scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from archfit import __version__
from archfit.audit.auditor import AuditResult, audit_model
from archfit.audit.claims import checked_claims
from archfit.audit.findings import Finding
from archfit.audit.zoo import zoo_models, zoo_names
from archfit.plan.advisers import evidence_against
from archfit.plan.repairs import plan_command
from archfit.report.audit_document import MODEL_COLUMNS, gallery_summary
from archfit.report.explorer.api import audited_config, audited_name, plan_of
from archfit.report.explorer.exchange import HTML, Asked, Reply
from archfit.report.explorer.forms import BUDGETS, PLAN_FIELDS, Form, plan_query, read_form
from archfit.report.explorer.static import links
from archfit.report.plan_document import bottleneck_sentence, effect_sentence, named_shape
from archfit.spec.sentence import one_line

if TYPE_CHECKING:
    from jinja2 import Environment

AUDIT_FIELDS = {"name": "", "config": ""}
GALLERY_FIELDS = {"find": "", "sort": "model", "down": ""}
COLUMNS = (*MODEL_COLUMNS, "findings")
WORDS = ("model", "modality", "findings")  # columns; the others hold numbers
SLUGS = tuple(column.replace(" ", "-") for column in COLUMNS)


def plan_page(asked: Asked) -> Reply:
    """The plan for what the controls say."""
    form = read_form(asked.query, PLAN_FIELDS)
    shown: dict[str, object] = {"form": form.fields, "budgets": BUDGETS}
    try:
        query = plan_query(form)
        plan = plan_of(query)
    except ValueError as problem:
        return _refused("plan.html", problem, shown)
    shown |= {
        "plan": plan,
        "why": bottleneck_sentence(plan),
        "effect": effect_sentence(plan),
        "advice": [(advice, named_shape(advice)) for advice in plan.advice],
        "evidence_against": evidence_against(),
        "command": plan_command(plan.request),
        "api": f"api/plan?{urlencode(query)}",
    }
    return _page("plan.html", shown)


def audit_page(asked: Asked) -> Reply:
    """The findings for a name of the table or a pasted config."""
    form = read_form(asked.query, AUDIT_FIELDS)
    fields = form.fields | ({"config": asked.body.decode(errors="replace")} if asked.body else {})
    shown: dict[str, object] = {"form": fields, "names": _names()}
    if not any(fields.values()) and not form.problem:
        return _page("audit.html", shown | {"one": None})
    try:
        one = _audited(Form(fields=fields, problem=form.problem))
    except ValueError as problem:
        return _refused("audit.html", problem, shown)
    api = f"api/audit?{urlencode({'name': fields['name']})}" if fields["name"] else ""
    facts = [(title, say(one)) for title, say in MODEL_COLUMNS.items()]
    return _page("audit.html", shown | {"one": one, "facts": facts, "api": api})


def gallery_page(asked: Asked) -> Reply:
    """The published models that match, sorted."""
    form = read_form(asked.query, GALLERY_FIELDS)
    shown: dict[str, object] = {
        "form": form.fields,
        "columns": list(zip(COLUMNS, SLUGS, strict=True)),
        "words": WORDS,
    }
    models = _published()
    shown |= {"claims": checked_claims(models), "summary": gallery_summary(models)}
    sort = form.fields["sort"]
    if form.problem or sort not in SLUGS:
        problem = form.problem or f"sort={sort[:40]!r} is no column; use {', '.join(SLUGS)}"
        return _refused("gallery.html", ValueError(problem), shown)
    rows = _rows()
    found = [row for row in rows if row.has(form.fields["find"])]
    at, down = SLUGS.index(sort), bool(form.fields["down"])
    return _page(
        "gallery.html", shown | {"rows": _sorted(found, at, down=down), "total": len(rows)}
    )


def _audited(form: Form) -> AuditResult:
    if form.problem:
        raise ValueError(form.problem)
    name, config = form.fields["name"], form.fields["config"]
    if name and config:
        raise ValueError("a name and a config are given; give one of them")
    return audited_name(name) if name else audited_config(config.encode())


@dataclass(frozen=True, slots=True)
class Row:
    """A model of the gallery."""

    cells: list[str]
    findings: tuple[Finding, ...]

    @property
    def columns(self) -> list[str]:
        """What it is sorted by: its cells and, as words, its findings."""
        return [*self.cells, " ".join(found.id for found in self.findings)]

    def has(self, words: str) -> bool:
        """Whether these words are somewhere in it."""
        return words.casefold() in " ".join(self.columns).casefold()


@cache
def _rows() -> tuple[Row, ...]:
    return tuple(
        Row([say(one) for say in MODEL_COLUMNS.values()], one.findings) for one in _published()
    )


def _sorted(rows: Sequence[Row], at: int, *, down: bool) -> list[Row]:
    """By one column; what is not known comes last either way."""

    def key(row: Row) -> tuple[float, str]:
        text = row.columns[at]
        is_number = COLUMNS[at] not in WORDS
        return float(text.replace(",", "")) if is_number else 0, text.casefold()

    known = sorted((row for row in rows if row.columns[at]), key=key, reverse=down)
    return known + [row for row in rows if not row.columns[at]]


@cache
def _published() -> tuple[AuditResult, ...]:
    return tuple(audit_model(model) for model in zoo_models())


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(zoo_names().values(), key=str.casefold))


def _refused(template: str, problem: ValueError, shown: dict[str, object]) -> Reply:
    return _page(template, shown | {"problem": one_line(str(problem))}, status=400)


def _page(template: str, shown: dict[str, object], status: int = 200) -> Reply:
    text = _templates().get_template(template).render(
        {"problem": "", "version": __version__, "links": links()} | shown
    )  # fmt: skip
    return Reply(status=status, media=HTML, content=text.encode())


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("archfit.report", "templates/explorer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
