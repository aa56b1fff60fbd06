"""`archfit theory` and `archfit bounds`: a quantity of the papers, all bounds of a network."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Annotated

import typer

from archfit.cli import options
from archfit.cli.options import AsJson, Chart, chosen, flag, size
from archfit.cli.output import show
from archfit.report.theory_document import bounds_document, quantities_document, quantity_document
from archfit.spec.sizes import parse_size
from archfit.theory.bounds import Shape, bounds_report
from archfit.theory.catalogue import quantity
from archfit.theory.counterexample import refute_for_shape, refute_formula

NAME = typer.Argument(help="A quantity, such as ub_stat. Without one, all are listed.")
INPUTS = typer.Argument(metavar="KEY=VALUE...", help="Its inputs, such as L=12 d_x=768.")
SEARCH = flag("--counterexample", "Search for weights that exceed a disputed bound.")
REFUTE = flag("--counterexample", "Try to refute the disputed bound.")


def theory(
    name: Annotated[str, NAME] = "",
    inputs: Annotated[list[str] | None, INPUTS] = None,
    counterexample: Annotated[bool, SEARCH] = False,
    as_json: AsJson = False,
) -> None:
    """One bound, threshold or count of the papers, exact or with certified digits."""
    if not name and not inputs:
        return show(quantities_document(), as_json=as_json)
    given = dict(map(parse_input, inputs or []))
    if len(given) < len(inputs or []):
        raise ValueError(f"an input is given twice in {' '.join(inputs or [])!r}; give each once")
    result = quantity(name, **given)
    verdict = refute_formula(name, result.inputs) if counterexample else None
    return show(quantity_document(result, verdict), as_json=as_json)


def parse_input(text: str) -> tuple[str, object]:
    """`key=value`, where the value is JSON, a size such as 125M, or a plain word."""
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise ValueError(f"{text!r} is not an input; write KEY=VALUE, such as d_x=768")
    try:
        return key, json.loads(value, parse_float=Decimal)
    except RecursionError as problem:
        raise ValueError(
            f"{key}={value[:20]}… is nested too deeply; a plan has 3 levels"
        ) from problem
    except ValueError:
        pass
    try:
        return key, parse_size(value)
    except ValueError:
        return key, value


def bounds(
    invocation: typer.Context,
    depth: Annotated[int, options.DEPTH],
    width: Annotated[int, options.WIDTH],
    heads: Annotated[int, options.HEADS],
    head_dim: Annotated[int | None, options.HEAD_DIM] = None,
    positions: Annotated[int | None, size("Default: any number.")] = None,
    vocab: Annotated[int | None, size("Default: continuous inputs.", "V")] = None,
    rank: Annotated[int | None, options.RANK] = None,
    position_rank: Annotated[int, options.POSITION_RANK] = 0,
    residual: Annotated[bool, options.RESIDUAL] = False,
    counterexample: Annotated[bool, REFUTE] = False,
    chart: Chart = None,
    as_json: AsJson = False,
) -> None:
    """All bounds on the separation rank of one architecture, the best proved pair first.

    --chart draws them over depth.
    """
    report = bounds_report(chosen(Shape, invocation))
    verdict = refute_for_shape(report) if counterexample else None
    show(bounds_document(report, verdict), as_json=as_json, chart=chart, figure="bounds")
