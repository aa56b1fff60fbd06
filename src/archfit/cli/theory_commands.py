"""`archfit theory` and `archfit bounds`: what the papers prove."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from archfit.cli.shared import show, with_words
from archfit.report.theory_document import quantities_document, quantity_document
from archfit.spec.errors import InvalidValue, refusal, refuse_if
from archfit.spec.sizes import parse_size
from archfit.theory.catalogue import quantity
from archfit.theory.counterexample import refute_formula
from archfit.theory.shape import Shape


@with_words("theory")
def theory(name: str = "", inputs: list[str] | None = None, counterexample: bool = False) -> None:
    """One bound, threshold or count by name: exact, or to certified digits."""
    if not name and not inputs:
        return show(quantities_document())
    given = dict(map(parse_input, inputs or []))
    is_twice = len(given) < len(inputs or [])
    refuse_if(is_twice, "input-twice", inputs=repr(" ".join(inputs or [])))
    try:
        result = quantity(name, **given)
    except InvalidValue as problem:  # by the letters that were typed, not as options
        raise ValueError(str(problem)) from problem
    verdict = refute_formula(name, result.inputs) if counterexample else None
    return show(quantity_document(result, verdict))


def parse_input(text: str) -> tuple[str, object]:
    """`key=value`, where the value is JSON, a size such as 125M, or a plain word."""
    key, equals, value = text.partition("=")
    refuse_if(not (equals and key and value), "no-input", text=repr(text))
    try:
        return key, json.loads(value, parse_float=Decimal)
    except RecursionError as problem:
        raise refusal("deep-input", key=key, value=value[:20]) from problem
    except ValueError:
        pass
    try:
        return key, parse_size(value)
    except ValueError:
        return key, value


@with_words("bounds", Shape)
def bounds(counterexample: bool = False, chart: Path | None = None, **shape: Any) -> None:
    """Lower and upper bounds on the separation rank of one network, the best pair first.

    --chart draws them over depth.
    """
    from archfit import answers

    found = answers.bounds(counterexample=counterexample, **shape)
    show(found.document, chart=chart, figure="bounds")
