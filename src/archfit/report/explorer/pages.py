"""The pages as HTML, with the charts and static files that they load.

Every state has an address, and each page works without scripts. Titles of charts stand in the page,
where they wrap and are read aloud; the drawings go without.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from archfit import __version__
from archfit.advise.repairs import plan_command
from archfit.audit.auditor import AuditResult, audit_model, checked_claims
from archfit.audit.findings import Finding
from archfit.audit.zoo import zoo_models, zoo_names
from archfit.report.audit_document import gallery_summary, model_sections, models_table
from archfit.report.document import NARROW, WIDE
from archfit.report.explorer.api import Pairs, audited_config, audited_name, plan_of
from archfit.report.explorer.exchange import HTML, ExplorerRequest, Reply
from archfit.report.page import fragment
from archfit.report.plan_document import adviser_sections, plan_document, plan_figures
from archfit.spec.errors import one_line

if TYPE_CHECKING:
    from jinja2 import Environment

    from archfit.report.document import Drawing

STATIC_FILES = {"explorer.js": "text/javascript", "explorer.css": "text/css"}
VEGA = "vega.js"


@cache
def links() -> dict[str, str]:
    """The address of each file, from a page; it changes with the file."""
    hashes = {name: hashlib.sha256(static_file(name)).hexdigest()[:12] for name in STATIC_FILES}
    versions = hashes | {VEGA: metadata.version("vl-convert-python")}
    return {name: f"static/{version}/{name}" for name, version in versions.items()}


@cache
def static_file(name: str) -> bytes:
    """A script or sheet of the explorer itself."""
    folder = resources.files("archfit.report").joinpath("templates/explorer")
    return folder.joinpath(name).read_bytes()


BUDGETS = {
    "params": "all parameters",
    "block_params": "parameters of the blocks",
    "flops": "operations of the training",
    "tokens": "tokens of the data",
    "bytes": "bytes of the weights",
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
AUDIT_FIELDS = {"name": "", "config": ""}
GALLERY_FIELDS = {"find": "", "sort": "model", "down": ""}


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """The fields of a page as they were sent."""

    fields: dict[str, str]
    problem: str  # with the form itself; empty: none

    def check(self) -> None:
        """Refuse a form with a problem."""
        if self.problem:
            raise ValueError(self.problem)


def read_form(query: Pairs, defaults: dict[str, str]) -> Form:
    """The fields, with the defaults for those that were not sent."""
    sent = dict(query)
    fields = {name: sent.get(name, default).strip() for name, default in defaults.items()}
    unknown = [name for name in sent if name not in defaults]
    problem = f"{unknown[0][:40]!r} is no field; use {', '.join(defaults)}" if unknown else ""
    if len(sent) < len(query):
        problem = "a field is sent twice; send it once"
    return Form(fields=fields, problem=problem)


def plan_query(form: Form) -> Pairs:
    """The parameters of the API that the fields of the plan say."""
    form.check()
    fields = dict(form.fields)
    kind, budget = fields.pop("of"), fields.pop("budget")
    if kind not in BUDGETS:
        raise ValueError(f"of={kind[:40]!r} is no budget; use one of {', '.join(BUDGETS)}")
    return [(name, text) for name, text in ({kind: budget} | fields).items() if text]


def plan_page(request: ExplorerRequest) -> Reply:
    """The plan for what the controls say."""
    form = read_form(request.query, PLAN_FIELDS)
    values: dict[str, object] = {"form": form.fields, "budgets": BUDGETS}
    try:
        query = plan_query(form)
        plan = plan_of(query)
    except ValueError as problem:
        return page_reply("plan.html", values, problem)
    sections = [part for part in plan_document(plan).sections if not part.is_detail]
    advisers = adviser_sections(plan)
    start = sections.index(advisers[0])
    values |= {
        "plan": plan,
        "why": fragment(sections[:start]),
        "advisers": fragment(advisers),
        "next": fragment(sections[start + len(advisers) :]),
        "command": plan_command(plan.request),
        "api": f"api/plan?{urlencode(query)}",
    }
    return page_reply("plan.html", values)


def audit_page(request: ExplorerRequest) -> Reply:
    """The findings for a name of the table or a pasted config."""
    form = read_form(request.query, AUDIT_FIELDS)
    if request.body:
        form.fields["config"] = request.body.decode(errors="replace")
    name, config = form.fields["name"], form.fields["config"]
    names = sorted(zoo_names().values(), key=str.casefold)
    values: dict[str, object] = {"form": form.fields, "names": names, "model": None}
    if not (name or config or form.problem):
        return page_reply("audit.html", values)
    try:
        form.check()
        if name and config:
            raise ValueError("a name and a config are given; give one of them")
        audited = audited_name(name) if name else audited_config(config.encode())
    except ValueError as problem:
        return page_reply("audit.html", values, problem)
    values |= {
        "model": audited.model,
        "sections": fragment(model_sections(audited)),
        "api": f"api/audit?{urlencode({'name': name})}" if name else "",
    }
    return page_reply("audit.html", values)


COLUMNS = (*models_table(()).columns, "findings")
WORDS = ("model", "modality", "findings")  # columns; the others hold numbers
SLUGS = tuple(column.replace(" ", "-") for column in COLUMNS)


@dataclass(frozen=True, slots=True)
class GalleryRow:
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


def gallery_page(request: ExplorerRequest) -> Reply:
    """The published models that match, sorted."""
    form, models = read_form(request.query, GALLERY_FIELDS), _published_models()
    values: dict[str, object] = {
        "form": form.fields,
        "columns": list(zip(COLUMNS, SLUGS, strict=True)),
        "words": WORDS,
        "claims": checked_claims(models),
        "summary": gallery_summary(models),
    }
    find, sort = form.fields["find"], form.fields["sort"]
    if form.problem or sort not in SLUGS:
        problem = form.problem or f"sort={sort[:40]!r} is no column; use {', '.join(SLUGS)}"
        return page_reply("gallery.html", values, ValueError(problem))
    rows = [
        GalleryRow(list(cells), audited.findings)
        for cells, audited in zip(models_table(models).rows, models, strict=True)
    ]
    found = [row for row in rows if row.has(find)]
    ordered = _sorted(found, SLUGS.index(sort), down=bool(form.fields["down"]))
    return page_reply("gallery.html", values | {"rows": ordered, "total": len(rows)})


@cache
def _published_models() -> tuple[AuditResult, ...]:
    return tuple(audit_model(model) for model in zoo_models())


def _sorted(rows: Sequence[GalleryRow], at: int, *, down: bool) -> list[GalleryRow]:
    """By one column; what is not known comes last either way."""

    def key(row: GalleryRow) -> tuple[float, str]:
        text = row.columns[at]
        is_number = COLUMNS[at] not in WORDS
        return float(text.replace(",", "")) if is_number else 0, text.casefold()

    known = sorted((row for row in rows if row.columns[at]), key=key, reverse=down)
    return known + [row for row in rows if not row.columns[at]]


def page_reply(
    template: str, values: Mapping[str, object], problem: ValueError | None = None
) -> Reply:
    """The page of these values, or what is wrong with the request above its form."""
    words = {"problem": one_line(str(problem)) if problem else ""}
    always = words | {"version": __version__, "links": links()}
    text = _templates().get_template(template).render({**always, **values})
    return Reply(status=400 if problem else 200, media=HTML, content=text.encode())


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


def plan_chart(at: int, request: ExplorerRequest, *, is_narrow: bool) -> object:
    """A figure of the plan that the page shows: depths of its size, or bounds over depth."""
    plan = plan_of(plan_query(read_form(request.query, PLAN_FIELDS)))
    figure = plan_figures(plan)[at]
    spec = chart_spec(figure.chart(NARROW if is_narrow else WIDE))
    spec["description"] = figure.description
    return _titled(spec, [spec])


def models_chart(_request: ExplorerRequest, *, is_narrow: bool) -> object:
    """The published models of the gallery."""
    from archfit.report.charts.audit import gallery_chart

    spec = chart_spec(gallery_chart(_published_models()))
    if not is_narrow:
        return _titled(spec, [spec])
    shapes, ratios = spec["vconcat"]
    shapes["width"] = NARROW_WIDTH
    del shapes["title"]
    for layer in shapes["layer"]:
        for channel in layer["encoding"].values():
            if isinstance(channel, dict) and channel.get("legend"):
                channel["legend"] |= {"orient": "bottom", "columns": 2}
    for bars in ratios["hconcat"]:
        bars["width"] = NARROW_BARS
        for layer in bars["layer"]:
            layer["encoding"]["x"]["axis"] = {"titleAnchor": "end"}
    shared = {key: spec[key] for key in ("config", "datasets") if key in spec}
    layout = {"bottom": {"anchor": "start", "direction": "vertical"}}
    shared["config"]["legend"] = {"layout": layout}
    return _titled(spec, [part | shared for part in (shapes, *ratios["hconcat"])])


def chart_spec(chart: "Drawing") -> Json:
    """What Vega-Lite draws."""
    spec: Json = chart.to_dict()
    del spec["$schema"]  # an address; the page names the grammar itself
    return spec


def _titled(whole: Json, drawings: list[Json]) -> Json:
    """What a page needs to show the chart, as one drawing or as several."""
    title = whole.pop("title")
    return {
        "title": title["text"],
        "subtitle": title.get("subtitle", []),
        "description": whole["description"],
        "specs": drawings,
    }


CHARTS: dict[str, Callable[[ExplorerRequest], object]] = {
    f"/chart/{layout}/{name}": partial(chart, is_narrow=layout == "narrow")
    for layout in ("wide", "narrow")
    for name, chart in (
        ("depths", partial(plan_chart, 0)),
        ("bounds", partial(plan_chart, 1)),
        ("models", models_chart),
    )
}
