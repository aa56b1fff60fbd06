"""The API: its parameters, the documents that `--json` prints, and its OpenAPI description."""

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from archfit import __version__
from archfit.audit.auditor import AuditResult, audit_json, audit_model
from archfit.audit.config import model_from_config
from archfit.audit.zoo import zoo_model
from archfit.plan.planner import Plan, make_plan
from archfit.plan.request import PlanOptions
from archfit.report.charts import DEEPEST_BOUNDS
from archfit.report.explorer import exchange
from archfit.report.explorer.exchange import MOST_BODY_BYTES, MOST_TEXT, ExplorerRequest
from archfit.report.plan_document import plan_document as document_of_plan
from archfit.spec.bounded_json import parse_object
from archfit.spec.sizes import parse_size
from archfit.theory.bounds import Shape, bounds_report

Value = int | float | bool | str
Pairs = Sequence[tuple[str, str]]
Schema = dict[str, object]

SIZE_PATTERN = r"^[+-]?[0-9]+(\.[0-9]+)?([eE]\+?[0-9]{1,3})?[KMBGTkmbgt]?$"
NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One of them; sizes may be written as on the command line."""

    name: str
    kind: Literal["size", "number", "flag", "text"]
    means: str
    example: str
    required: bool = False

    def read(self, text: str) -> Value:
        """The value that `text` writes."""
        if len(text) > MOST_TEXT:
            raise ValueError(f"{self.name} has {len(text):,} characters; use at most {MOST_TEXT}")
        try:
            return _READ[self.kind](text)
        except ValueError as problem:
            raise ValueError(f"{self.name}: {problem}") from problem

    def described(self) -> Schema:
        """As OpenAPI writes it."""
        return {
            "name": self.name,
            "in": "query",
            "required": self.required,
            "description": self.means,
            "schema": _SCHEMAS[self.kind],
            "example": self.example,
        }


def _number(text: str) -> float:
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number; write one such as 20 or 0.5")
    return float(text)


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false; use one of the two")
    return text == "true"


_READ: dict[str, Callable[[str], Value]] = {
    "size": parse_size,
    "number": _number,
    "flag": _flag,
    "text": str,
}
_SCHEMAS: dict[str, Schema] = {
    "size": {"type": "string", "pattern": SIZE_PATTERN, "maxLength": MOST_TEXT},
    "number": {"type": "number"},
    "flag": {"type": "string", "enum": ["true", "false"]},
    "text": {"type": "string", "maxLength": MOST_TEXT},
}

PLAN = (
    Parameter("params", "size", "Budget: all parameters.", "125M"),
    Parameter("block_params", "size", "Budget: blocks alone, 12 L d^2.", "100M"),
    Parameter("flops", "size", "Budget: operations of the training.", "1e19"),
    Parameter("vocab", "size", "Tokens; else 50257, GPT-2's.", "32000"),
    Parameter("rank", "size", "Inner size of a factorised embedding.", "128"),
    Parameter("patch", "text", "Values embedded at a position.", "16x16x3"),
    Parameter("context", "size", "Positions seen at once.", "1024"),
    Parameter("tied", "flag", "The embedding is the head, too.", "true"),
    Parameter("max_depth", "size", "Layers that you would train.", "128"),
    Parameter("multiple_of", "size", "Of the width; else as GPUs like it.", "64"),
    Parameter("tokens_per_param", "number", "Training tokens for each parameter.", "20"),
)
BOUNDS = (
    Parameter("depth", "size", "Number of layers.", "12", required=True),
    Parameter("width", "size", "Residual stream.", "768", required=True),
    Parameter("heads", "size", "Heads in a layer.", "12", required=True),
    Parameter("head_dim", "size", "Else width / heads.", "64"),
    Parameter("positions", "size", "Else any number.", "1024"),
    Parameter("vocab", "size", "Else continuous inputs.", "50257"),
    Parameter("rank", "size", "Of the embedding.", "128"),
    Parameter("position_rank", "size", "0: no positional vectors.", "0"),
    Parameter("residual", "flag", "With residual connections.", "true"),
)
MEANS_NAME = "A model of the built-in table, by its id or printed name."
AUDIT = (Parameter("name", "text", MEANS_NAME, "albert-xxlarge-v1", required=True),)


def read_parameters(pairs: Pairs, parameters: Sequence[Parameter]) -> dict[str, Value]:
    """The values by name; an unknown, repeated or missing name is refused."""
    known = {parameter.name: parameter for parameter in parameters}
    given: dict[str, Value] = {}
    for name, text in pairs:
        if name not in known:
            raise ValueError(f"{name[:40]!r} is no parameter; use {', '.join(known)}")
        if name in given:
            raise ValueError(f"{name} is given twice; give it once")
        given[name] = known[name].read(text)
    required = [parameter for parameter in parameters if parameter.required]
    missing = [parameter.name for parameter in required if parameter.name not in given]
    if missing:
        example = "&".join(f"{parameter.name}={parameter.example}" for parameter in required)
        raise ValueError(f"{', '.join(missing)} missing; as in {example}")
    return given


PASTED = "config.json"


class TooLargeError(ValueError):
    """It would take longer than the explorer computes."""


def plan_document(request: ExplorerRequest) -> object:
    """As `archfit plan --json`."""
    return document_of_plan(plan_of(request.query)).data


def plan_of(query: Pairs) -> Plan:
    """The plan that these parameters ask for, with the command line's defaults for the rest."""
    options = PlanOptions(**read_parameters(query, PLAN))  # type: ignore[arg-type]  # each was read as its kind
    return make_plan(options.request())


def bounds_document(request: ExplorerRequest) -> object:
    """As `archfit bounds --json`."""
    shape = Shape(**read_parameters(request.query, BOUNDS))  # type: ignore[arg-type]  # each was read as its kind
    if shape.depth > DEEPEST_BOUNDS:
        raise TooLargeError(
            f"depth={shape.depth} is over {DEEPEST_BOUNDS}, and bounds of such depths take too "
            f"long for the explorer; run {command_line(request)}"
        )
    return bounds_report(shape).as_json()


def audit_document(request: ExplorerRequest) -> object:
    """As `archfit audit --json`: a list of one, by its name or by the config.json of the body."""
    if not request.body:
        name = str(read_parameters(request.query, AUDIT)["name"])
        return [audit_json(audited_name(name))]
    if request.query:
        raise ValueError("a config.json and parameters are given; give one of them")
    return [audit_json(audited_config(request.body))]


def audited_name(name: str) -> AuditResult:
    """A model of the built-in table; no other place is looked into."""
    return audit_model(zoo_model(name))


def audited_config(content: bytes) -> AuditResult:
    """The model that the text of a config.json describes."""
    document = parse_object(content, where=PASTED)
    return audit_model(model_from_config(document, name=PASTED, origin="the text that was sent"))


def command_line(request: ExplorerRequest) -> str:
    """What asks the same on the command line, where nothing is too long."""
    fields = dict(request.query)
    if request.path.endswith("audit"):
        return f"archfit audit {shlex.quote(fields.get('name', PASTED))} --json"
    if request.path == "/api/bounds":
        return f"archfit bounds {_options(fields)} --json"
    if "of" in fields or "budget" in fields:  # the address of a page
        fields = {fields.pop("of", "params"): fields.pop("budget", "125M")} | fields
    return f"archfit plan {_options(fields)} --chart plan.svg"


def _options(fields: Mapping[str, str]) -> str:
    words = []
    for name, text in fields.items():
        option = f"--{name.replace('_', '-')}"
        if text and text != "false":
            words.append(option if text == "true" else f"{option} {shlex.quote(text)}")
    return " ".join(words)


ADDRESS = "/api/openapi.json"
_ANSWERS = resources.files("archfit.resources").joinpath("explorer-schemas.json")
REFUSALS = {
    "400": "A value is wrong; the sentence names it, the rule and the way out.",
    "405": "No such method here.",
    "413": f"The body is larger than {MOST_BODY_BYTES:,} bytes.",
    "422": f"It would take longer than {exchange.MOST_SECONDS:g} s; the sentence has the command "
    "line's equivalent, which has no such limit.",
    "429": "Too many wait for an answer; ask again in a second.",
}
EXAMPLE = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}


def openapi_document() -> Schema:
    """The document at /api/openapi.json, made of the tables that requests are read with."""
    plan = _operation("plan", "The shape for a budget and a vocabulary.", PLAN)
    bounds = _operation("bounds", "All bounds on the separation rank of a shape.", BOUNDS)
    audit = _operation("audit", "What a published model's shape wastes.", AUDIT)
    config: Schema = {
        "required": True,
        "description": "A config.json as Hugging Face's transformers writes it, of at most "
        f"{MOST_BODY_BYTES:,} bytes.",
        "content": {"application/json": {"schema": {"type": "object"}, "example": EXAMPLE}},
    }
    audit_config = _operation("audit", "What the shape in a config.json wastes.", ())
    audit_config |= {"operationId": "audit_config", "requestBody": config}
    itself = {
        "operationId": "openapi",
        "summary": "This description.",
        "responses": {"200": _content("The description.", {"type": "object"})},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "archfit explorer",
            "version": __version__,
            "summary": "Which Transformer architecture fits my data?",
            "description": "The documents are those that `archfit plan`, `bounds` and `audit` "
            "print with --json. Sizes may be written 125M, 1.3B or 2e7. Limits: bodies of "
            f"{MOST_BODY_BYTES:,} bytes, request line and headers of "
            f"{exchange.MOST_HEAD_BYTES:,}, {exchange.MOST_SECONDS:g} s of computing, "
            f"{exchange.REQUEST_SECONDS:g} s from the first byte of a request to the last of its "
            "answer. Nothing is stored, no file or other host is read.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/api/plan": {"get": plan},
            "/api/bounds": {"get": bounds},
            "/api/audit": {"get": audit, "post": audit_config},
            ADDRESS: {"get": itself},
        },
        "components": {"schemas": json.loads(_ANSWERS.read_text(encoding="utf-8"))},
    }


def _operation(name: str, summary: str, parameters: Sequence[Parameter]) -> Schema:
    refusals = {
        status: _content(words, {"$ref": "#/components/schemas/error"})
        for status, words in REFUSALS.items()
    }
    answer = _content(
        f"The document of archfit {name} --json.", {"$ref": f"#/components/schemas/{name}"}
    )
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [parameter.described() for parameter in parameters],
        "responses": {"200": answer} | refusals,
    }


def _content(words: str, schema: Schema) -> Schema:
    return {"description": words, "content": {"application/json": {"schema": schema}}}
