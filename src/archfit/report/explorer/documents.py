"""The API: how parameters are read, and documents as the command line prints with `--json`."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from archfit.audit.auditor import AuditResult, audit_json, audit_model
from archfit.audit.config import model_from_config
from archfit.audit.zoo import zoo_model
from archfit.plan.planner import Plan, make_plan
from archfit.plan.request import PlanOptions
from archfit.report.charts import DEEPEST_BOUNDS
from archfit.report.explorer.exchange import MOST_TEXT, ExplorerRequest
from archfit.report.plan_document import plan_document as document_of_plan
from archfit.spec.bounded_json import parse_object
from archfit.spec.sizes import parse_size
from archfit.theory.bounds import Shape, bounds_report

Value = int | float | bool | str
Pairs = Sequence[tuple[str, str]]

SIZE_PATTERN = r"^[+-]?[0-9]+(\.[0-9]+)?([eE]\+?[0-9]{1,3})?[KMBGTkmbgt]?$"
NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, kw_only=True, slots=True)
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

    def described(self) -> dict[str, object]:
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
_SCHEMAS: dict[str, dict[str, object]] = {
    "size": {"type": "string", "pattern": SIZE_PATTERN, "maxLength": MOST_TEXT},
    "number": {"type": "number"},
    "flag": {"type": "string", "enum": ["true", "false"]},
    "text": {"type": "string", "maxLength": MOST_TEXT},
}

PLAN = (
    Parameter(name="params", kind="size", means="Budget: all parameters.", example="125M"),
    Parameter(
        name="block_params", kind="size", means="Budget: blocks alone, 12 L d^2.", example="100M"
    ),
    Parameter(
        name="flops", kind="size", means="Budget: operations of the training.", example="1e19"
    ),
    Parameter(
        name="vocab", kind="size", means="Tokens; else 50257, GPT-2's.", example="32000"
    ),
    Parameter(
        name="rank", kind="size", means="Inner size of a factorised embedding.", example="128"
    ),
    Parameter(
        name="patch", kind="text", means="Values embedded at a position.", example="16x16x3"
    ),
    Parameter(name="context", kind="size", means="Positions seen at once.", example="1024"),
    Parameter(name="tied", kind="flag", means="The embedding is the head, too.", example="true"),
    Parameter(
        name="max_depth", kind="size", means="Layers that you would train.", example="128"
    ),
    Parameter(
        name="multiple_of", kind="size", means="Of the width; else as GPUs like it.", example="64"
    ),
    Parameter(
        name="tokens_per_param",
        kind="number",
        means="Training tokens for each parameter.",
        example="20",
    ),
)  # fmt: skip
BOUNDS = (
    Parameter(name="depth", kind="size", means="Number of layers.", example="12", required=True),
    Parameter(name="width", kind="size", means="Residual stream.", example="768", required=True),
    Parameter(name="heads", kind="size", means="Heads in a layer.", example="12", required=True),
    Parameter(name="head_dim", kind="size", means="Else width / heads.", example="64"),
    Parameter(name="positions", kind="size", means="Else any number.", example="1024"),
    Parameter(name="vocab", kind="size", means="Else continuous inputs.", example="50257"),
    Parameter(name="rank", kind="size", means="Of the embedding.", example="128"),
    Parameter(
        name="position_rank", kind="size", means="0: no positional vectors.", example="0"
    ),
    Parameter(
        name="residual", kind="flag", means="With residual connections.", example="true"
    ),
)  # fmt: skip
AUDIT = (
    Parameter(
        name="name",
        kind="text",
        means="A model of the built-in table, by its id or printed name.",
        example="albert-xxlarge-v1",
        required=True,
    ),
)


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
    missing = [one.name for one in parameters if one.required and one.name not in given]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing; as in {example(parameters)}")
    return given


def example(parameters: Sequence[Parameter]) -> str:
    """The part of an address that gives what is required."""
    return "&".join(f"{one.name}={one.example}" for one in parameters if one.required)


def asked_plan(values: Mapping[str, Value]) -> PlanOptions:
    """What is asked, with the defaults of the command line for the rest."""
    return PlanOptions(**values)  # type: ignore[arg-type]  # each was read as its kind


def asked_shape(values: Mapping[str, Value]) -> Shape:
    """The network whose bounds are asked for."""
    return Shape(**values)  # type: ignore[arg-type]  # each was read as its kind


PASTED = "config.json"


class TooLargeError(ValueError):
    """It would take longer than the explorer computes."""


def plan_document(asked: ExplorerRequest) -> object:
    """As `archfit plan --json`."""
    return document_of_plan(plan_of(asked.query)).data


def plan_of(query: Pairs) -> Plan:
    """The plan that these parameters ask for."""
    return make_plan(asked_plan(read_parameters(query, PLAN)).request())


def bounds_document(asked: ExplorerRequest) -> object:
    """As `archfit bounds --json`."""
    shape = asked_shape(read_parameters(asked.query, BOUNDS))
    if shape.depth > DEEPEST_BOUNDS:
        raise TooLargeError(
            f"depth={shape.depth} is over {DEEPEST_BOUNDS}, and bounds of such depths take too "
            f"long for the explorer; run {command_line(asked)}"
        )
    return bounds_report(shape).as_json()


def audit_document(asked: ExplorerRequest) -> object:
    """As `archfit audit --json`: a list of one."""
    return [audit_json(audited_of(asked))]


def audited_of(asked: ExplorerRequest) -> AuditResult:
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


def command_line(asked: ExplorerRequest) -> str:
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
