"""The API: its limits and parameters, the documents that `--json` prints, and its description."""

import json
import re
import shlex
from collections.abc import Callable, Sequence
from functools import cache
from string import Template
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from archfit import __version__
from archfit.advise.plan_request import PlanOptions
from archfit.advise.planner import Plan, make_plan
from archfit.audit.auditor import AuditResult, audit_model
from archfit.audit.config import model_from_config
from archfit.audit.zoo import zoo_model
from archfit.report.audit_document import audit_json
from archfit.report.charts import DEEPEST_BOUNDS
from archfit.report.document import said
from archfit.report.plan_document import plan_document
from archfit.report.theory_document import bounds_json
from archfit.spec.codec import parse_object
from archfit.spec.files import packed_file
from archfit.spec.sizes import parse_bytes, parse_size
from archfit.theory.bounds import bounds_report
from archfit.theory.shape import Shape

Value = int | float | bool | str
Pairs = Sequence[tuple[str, str]]

MOST_BODY_BYTES = 10**6
MOST_HEAD_BYTES = 32 * 1024  # address and headers; a config.json of 10 kB fits into a link
MOST_HEADERS = 100
MOST_TEXT = 400  # characters of a value; the longest size that can be meant has 400 digits
MOST_SECONDS = 2.0  # of computing
REQUEST_SECONDS = 20.0  # of a connection, from its start to the last byte of the answer
PASTED = "config.json"
ADDRESS = "/api/openapi.json"
NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?")


class Question(NamedTuple):
    """A request, down to what decides its answer."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""  # of a POST; empty: it was a GET


def response(content: str, media: str, status: int = 200) -> Response:
    """An answer, which browsers ask about before they show it again."""
    kept = {"cache-control": "no-cache" if status == 200 else "no-store"}
    return Response(content, status, kept, media)


def json_response(document: object, status: int = 200) -> Response:
    """The text that `--json` prints."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return response(f"{text}\n", "application/json", status)


def refusal(path: str, status: int, sentence: str) -> Response:
    """One sentence: as JSON to a program, as text to a person."""
    if path.startswith(("/api/", "/chart/")):
        return json_response({"error": sentence}, status)
    return response(f"{sentence}\n", "text/plain", status)


def _number(text: str) -> float:
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number; write one such as 20 or 0.5")
    return float(text)


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false; use one of the two")
    return text == "true"


# What reads a parameter, by the name of its schema; sizes are written as on the command line.
READERS: dict[str, Callable[[str], Value]] = {
    "size": parse_size,
    "bytes": parse_bytes,
    "number": _number,
    "flag": _flag,
    "text": str,
}


@cache
def openapi_document() -> dict[str, Any]:
    """The document at /api/openapi.json, which requests are read by, too."""
    limits = {
        "VERSION": __version__,
        "MOST_BODY_BYTES": f"{MOST_BODY_BYTES:,}",
        "MOST_HEAD_BYTES": f"{MOST_HEAD_BYTES:,}",
        "MOST_HEADERS": MOST_HEADERS,
        "MOST_SECONDS": f"{MOST_SECONDS:g}",
        "REQUEST_SECONDS": f"{REQUEST_SECONDS:g}",
    }
    text = packed_file("explorer-openapi.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(Template(text).safe_substitute(limits))
    return document


def read_parameters(pairs: Pairs, path: str) -> dict[str, Value]:
    """The values by name; an unknown, repeated or missing name is refused."""
    described = openapi_document()["paths"][path]["get"]["parameters"]
    known = {parameter["name"]: parameter for parameter in described}
    given = dict[str, Value]()
    for name, text in pairs:
        if name not in known:
            raise ValueError(f"{name[:40]!r} is no parameter; use {', '.join(known)}")
        if name in given:
            raise ValueError(f"{name} is given twice; give it once")
        if len(text) > MOST_TEXT:
            raise ValueError(f"{name} has {len(text):,} characters; use at most {MOST_TEXT}")
        try:
            given[name] = READERS[known[name]["schema"]["$ref"].rpartition("/")[2]](text)
        except ValueError as problem:
            raise ValueError(f"{name}: {problem}") from problem
    required = [parameter for parameter in described if parameter["required"]]
    if missing := [found["name"] for found in required if found["name"] not in given]:
        example = "&".join(f"{found['name']}={found['example']}" for found in required)
        raise ValueError(f"{', '.join(missing)} missing; as in {example}")
    return given


def plan_of(query: Pairs) -> Plan:
    """The plan that these parameters ask for, with the command line's defaults for the rest."""
    options = PlanOptions(**read_parameters(query, "/api/plan"))  # type: ignore[arg-type]  # each was read as its kind
    return make_plan(options.request())


def bounds_document(asked: Question) -> object:
    """As `archfit bounds --json`."""
    shape = Shape(**read_parameters(asked.query, "/api/bounds"))  # type: ignore[arg-type]  # each was read as its kind
    if shape.depth > DEEPEST_BOUNDS:
        words = {"depth": shape.depth, "most": DEEPEST_BOUNDS, "command": command_line(asked)}
        raise HTTPException(422, said("explorer.deep", **words))
    return bounds_json(bounds_report(shape))


def audit_document(asked: Question) -> object:
    """As `archfit audit --json`: a list of one, by its name or by the config.json of the body."""
    if not asked.body:
        name = str(read_parameters(asked.query, "/api/audit")["name"])
        return [audit_json(audit_model(zoo_model(name)))]
    if asked.query:
        raise ValueError("a config.json and parameters are given; give one of them")
    return [audit_json(audited_config(asked.body))]


def audited_config(content: bytes) -> AuditResult:
    """The model that the text of a config.json describes."""
    document = parse_object(content, where=PASTED)
    return audit_model(model_from_config(document, name=PASTED, origin="the text that was sent"))


DOCUMENTS: dict[str, Callable[[Question], object]] = {
    "/api/plan": lambda asked: plan_document(plan_of(asked.query)).data,
    "/api/bounds": bounds_document,
    "/api/audit": audit_document,
}


def command_line(asked: Question) -> str:
    """What asks the same on the command line, where nothing is too long."""
    fields, words = dict(asked.query), ""
    if asked.path.endswith("audit"):
        return f"archfit audit {shlex.quote(fields.get('name', PASTED))} --json"
    if "of" in fields or "budget" in fields:  # the address of a page
        fields = {fields.pop("of", "params"): fields.pop("budget", "125M")} | fields
    for name, text in fields.items():
        if text and text != "false":
            words += f"--{name.replace('_', '-')} " + f"{shlex.quote(text)} " * (text != "true")
    is_bounds = asked.path == "/api/bounds"
    return f"archfit bounds {words}--json" if is_bounds else f"archfit plan {words}--chart plan.svg"
