"""The documents of the API: those that the command line prints with `--json`."""

import shlex
from collections.abc import Mapping

from archfit.audit.auditor import AuditResult, audit_json, audit_model
from archfit.audit.config import model_from_config
from archfit.audit.zoo import zoo_model
from archfit.plan.planner import Plan, make_plan
from archfit.report.bounds_chart import DEEPEST
from archfit.report.explorer.exchange import Asked
from archfit.report.explorer.parameters import (
    AUDIT,
    BOUNDS,
    PLAN,
    Pairs,
    asked_plan,
    asked_shape,
    read_parameters,
)
from archfit.report.plan_document import plan_document as document_of_plan
from archfit.spec.bounded_json import parse_object
from archfit.theory.bounds import bounds_report

PASTED = "config.json"


class TooLargeError(ValueError):
    """It would take longer than the explorer computes."""


def plan_document(asked: Asked) -> object:
    """As `archfit plan --json`."""
    return document_of_plan(plan_of(asked.query)).data


def plan_of(query: Pairs) -> Plan:
    """The plan that these parameters ask for."""
    return make_plan(asked_plan(read_parameters(query, PLAN)).request())


def bounds_document(asked: Asked) -> object:
    """As `archfit bounds --json`."""
    shape = asked_shape(read_parameters(asked.query, BOUNDS))
    if shape.depth > DEEPEST:
        raise TooLargeError(
            f"depth={shape.depth} is over {DEEPEST}, and bounds of such depths take too long for "
            f"the explorer; run {command_line(asked)}"
        )
    return bounds_report(shape).as_json()


def audit_document(asked: Asked) -> object:
    """As `archfit audit --json`: a list of one."""
    return [audit_json(audited_of(asked))]


def audited_of(asked: Asked) -> AuditResult:
    """The model of this name in the built-in table, or the one whose config.json is the body."""
    if asked.body:
        if asked.query:
            raise ValueError("a config.json and parameters are given; give one of them")
        return audited_config(asked.body)
    return audited_name(str(read_parameters(asked.query, AUDIT)["name"]))


def audited_name(name: str) -> AuditResult:
    """A model of the built-in table; no other place is looked into."""
    return audit_model(zoo_model(name))


def audited_config(content: bytes) -> AuditResult:
    """The model that the text of a config.json describes."""
    document = parse_object(content, where=PASTED)
    return audit_model(model_from_config(document, name=PASTED, origin="the text that was sent"))


def command_line(asked: Asked) -> str:
    """What asks the same on the command line, where nothing is too long."""
    fields = dict(asked.query)
    if asked.path.endswith("audit"):
        return f"archfit audit {shlex.quote(fields.get('name', PASTED))} --json"
    if asked.path == "/api/bounds":
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
