"""The parameters of the API: how each is read, and how OpenAPI says so."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from archfit.plan.request import PlanOptions
from archfit.report.explorer.limits import MOST_TEXT
from archfit.spec.sizes import parse_size
from archfit.theory.bounds import Shape

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
