"""The pages as HTML, with the charts and static files that they load.

Every state has an address, and each page works without scripts. Titles of charts stand in the page,
where they wrap and are read aloud; the drawings go without.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from archfit import __version__
from archfit.audit.auditor import AuditResult, audit_model
from archfit.audit.claims import checked_claims
from archfit.audit.findings import Finding
from archfit.audit.zoo import zoo_models, zoo_names
from archfit.plan.planner import Plan
from archfit.plan.repairs import plan_command
from archfit.report.audit_document import MODEL_COLUMNS, gallery_summary, model_sections
from archfit.report.document import NARROW, WIDE, Section
from archfit.report.explorer.documents import Pairs, audited_config, audited_name, plan_of
from archfit.report.explorer.exchange import HTML, ExplorerRequest, Reply
from archfit.report.page import fragment
from archfit.report.plan_document import adviser_sections, plan_document, plan_figures
from archfit.spec.errors import one_line

if TYPE_CHECKING:
    from jinja2 import Environment

    from archfit.report.document import Drawing

OWN = {"explorer.js": "text/javascript", "explorer.css": "text/css"}
VEGA = "vega.js"


@cache
def links() -> dict[str, str]:
    """The address of each file, from a page."""
    return {name: f"static/{version}/{name}" for name, version in _versions().items()}


@cache
def own_file(name: str) -> bytes:
    """A file of ours."""
    folder = resources.files("archfit.report").joinpath("templates/explorer")
    return folder.joinpath(name).read_bytes()


def _versions() -> dict[str, str]:
    own = {name: hashlib.sha256(own_file(name)).hexdigest()[:12] for name in OWN}
    return own | {VEGA: metadata.version("vl-convert-python")}


BUDGETS = {
    "params": "all parameters",
    "block_params": "parameters of the blocks",
    "flops": "operations of the training",
}
PLAN_FIELDS = {  # with what an untouched page shows; empty: not said
    "budget": "125M",
    "of": "params",
    "vocab": "",
    "rank": "",
    "patch": "",
    "context": "1024",
    "max_depth": "128",
    "tied": "",
    "multiple_of": "",
    "tokens_per_param": "20",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """The fields of a page as they were sent."""

    fields: dict[str, str]
    problem: str  # with the form itself; empty: none


def read_form(query: Pairs, defaults: dict[str, str]) -> Form:
    """The fields, with the defaults for those that were not sent."""
    sent = dict(query)
    fields = {name: sent.get(name, default).strip() for name, default in defaults.items()}
    unknown = [name for name in sent if name not in defaults]
    problem = f"{unknown[0][:40]!r} is no field; use {', '.join(defaults)}" if unknown else ""
    if len(sent) < len(query):
        problem = "a field is sent twice; send it once"
    return Form(fields=fields, problem=problem)


def plan_query(form: Form) -> Sequence[tuple[str, str]]:
    """The parameters of the API that the fields of the plan say."""
    if form.problem:
        raise ValueError(form.problem)
    fields = dict(form.fields)
    kind, budget = fields.pop("of"), fields.pop("budget")
    if kind not in BUDGETS:
        raise ValueError(f"of={kind[:40]!r} is no budget; use one of {', '.join(BUDGETS)}")
    return [(name, text) for name, text in ({kind: budget} | fields).items() if text]


def plan_from_page(query: Pairs) -> Plan:
    """The plan that the address of a page asks for."""
    return plan_of(plan_query(read_form(query, PLAN_FIELDS)))


AUDIT_FIELDS = {"name": "", "config": ""}
GALLERY_FIELDS = {"find": "", "sort": "model", "down": ""}
COLUMNS = (*MODEL_COLUMNS, "findings")
WORDS = ("model", "modality", "findings")  # columns; the others hold numbers
SLUGS = tuple(column.replace(" ", "-") for column in COLUMNS)


def plan_page(asked: ExplorerRequest) -> Reply:
    """The plan for what the controls say."""
    form = read_form(asked.query, PLAN_FIELDS)
    shown: dict[str, object] = {"form": form.fields, "budgets": BUDGETS}
    try:
        query = plan_query(form)
        plan = plan_of(query)
    except ValueError as problem:
        return _refused("plan.html", problem, shown)
    document = plan_document(plan)
    sections = [part for part in document.sections if not part.is_detail]
    if plan.leads_with_repairs:  # else the headline is the shape, which the page shows above
        sections.insert(0, Section(sentences=(document.headline,)))
    advisers = adviser_sections(plan)
    start = sections.index(advisers[0])
    shown |= {
        "plan": plan,
        "why": fragment(sections[:start]),
        "advisers": fragment(advisers),
        "next": fragment(sections[start + len(advisers) :]),
        "command": plan_command(plan.request),
        "api": f"api/plan?{urlencode(query)}",
    }
    return _page("plan.html", shown)


def audit_page(asked: ExplorerRequest) -> Reply:
    """The findings for a name of the table or a pasted config."""
    form = read_form(asked.query, AUDIT_FIELDS)
    fields = form.fields | ({"config": asked.body.decode(errors="replace")} if asked.body else {})
    shown: dict[str, object] = {"form": fields, "names": _names()}
    if not any(fields.values()) and not form.problem:
        return _page("audit.html", shown | {"model": None})
    try:
        audited = _audited(Form(fields=fields, problem=form.problem))
    except ValueError as problem:
        return _refused("audit.html", problem, shown)
    api = f"api/audit?{urlencode({'name': fields['name']})}" if fields["name"] else ""
    sections = fragment(model_sections(audited))
    return _page("audit.html", shown | {"model": audited.model, "sections": sections, "api": api})


def gallery_page(asked: ExplorerRequest) -> Reply:
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
        Row([say(audited) for say in MODEL_COLUMNS.values()], audited.findings)
        for audited in _published()
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


Json = dict[str, Any]  # of a grammar that others define

NARROW_WIDTH = NARROW.width + 20  # pixels: these charts have no panel beside them
NARROW_BARS = 130  # pixels, beside the names of models


def plan_chart(at: int, asked: ExplorerRequest, *, is_narrow: bool) -> object:
    """A figure of the plan that the page shows: all shapes of its size, or bounds over depth."""
    figure = plan_figures(plan_from_page(asked.query))[at]
    spec = _spec(figure.chart(NARROW if is_narrow else WIDE))
    return _document(spec, [spec])


def models_chart(_asked: ExplorerRequest, *, is_narrow: bool) -> object:
    """The published models of the gallery."""
    from archfit.report.charts.audit import gallery_chart

    spec = _spec(gallery_chart([audit_model(model) for model in zoo_models()]))
    if not is_narrow:
        return _document(spec, [spec])
    shapes, ratios = spec["vconcat"]
    shapes["width"] = NARROW_WIDTH
    del shapes["title"]
    _move_legends(shapes["layer"], orient="bottom", columns=2)
    for bars in ratios["hconcat"]:
        bars["width"] = NARROW_BARS
        for layer in bars["layer"]:
            layer["encoding"]["x"]["axis"] = {"titleAnchor": "end"}
    shared = {key: spec[key] for key in ("config", "datasets") if key in spec}
    shared["config"]["legend"] = {
        "layout": {"bottom": {"anchor": "start", "direction": "vertical"}}
    }
    return _document(spec, [part | shared for part in (shapes, *ratios["hconcat"])])


CHARTS: dict[str, Callable[[ExplorerRequest], object]] = {
    f"/chart/{layout}/{name}": partial(chart, is_narrow=layout == "narrow")
    for layout in ("wide", "narrow")
    for name, chart in (
        ("shapes", partial(plan_chart, 0)),
        ("bounds", partial(plan_chart, 1)),
        ("models", models_chart),
    )
}


def _move_legends(layers: list[Json], **properties: object) -> None:
    for layer in layers:
        for channel in layer["encoding"].values():
            if isinstance(channel, dict) and channel.get("legend"):
                channel["legend"] |= properties


def _spec(chart: "Drawing") -> Json:
    spec: Json = chart.to_dict()
    del spec["$schema"]  # an address; the page names the grammar itself
    return spec


def _document(whole: Json, drawings: list[Json]) -> Json:
    """What a page needs to show the chart, as one drawing or as several."""
    title = whole.pop("title")
    return {
        "title": title["text"],
        "subtitle": title.get("subtitle", []),
        "description": whole["description"],
        "specs": drawings,
    }
