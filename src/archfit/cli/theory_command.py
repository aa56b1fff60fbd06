"""`archfit theory`: one quantity of the papers by name."""

import json
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

import typer

from archfit.cli.output import print_json, short_integer
from archfit.spec.sizes import parse_size
from archfit.theory import catalogue
from archfit.theory.arithmetic import TooManyDigitsError
from archfit.theory.catalogue import ENTRIES, Quantity
from archfit.theory.counterexample import Verdict, refute_formula
from archfit.theory.quantities import Entry

WITNESSES = {"monomial_witness", "monomial_witness_log3"}


def theory(
    name: Annotated[
        str, typer.Argument(help="A quantity, such as ub_stat. Without one, all are listed.")
    ] = "",
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE...", help="Its inputs, such as L=12 d_x=768."),
    ] = None,
    counterexample: Annotated[
        bool,
        typer.Option("--counterexample", help="Search for weights that exceed a disputed bound."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """One bound, threshold or count of the papers, exact or with certified digits."""
    if not name and not inputs:
        return _list_quantities(as_json)
    given = dict(map(parse_input, inputs or []))
    if len(given) < len(inputs or []):
        raise ValueError(f"an input is given twice in {' '.join(inputs or [])!r}; give each once")
    result = catalogue.quantity(name, **given)
    verdict = refute_formula(name, result.inputs) if counterexample else None
    document: dict[str, object] = dict(result.as_json())
    if name in WITNESSES:
        document |= _compared_with_formula(result)
    if verdict is not None:
        document |= verdict.as_json()
    if as_json:
        return print_json(document)
    return _print_for_people(document, verdict)


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


def _compared_with_formula(witness: Quantity) -> dict[str, object]:
    """How the witness stands against the papers' formula for the same depth and width.

    Exactly where both can be written out, by certified logarithms elsewhere.
    """
    shape = {letter: witness.inputs[letter] for letter in ("L", "d_x")}
    is_short = witness.name == "monomial_witness" and _is_narrow(shape["d_x"])
    with suppress(TooManyDigitsError):
        if is_short:
            return _comparison(witness, catalogue.quantity("ub_thm2", **shape))
    logarithm = catalogue.quantity("monomial_witness_log3", **witness.inputs)
    return _comparison(logarithm, catalogue.quantity("ub_thm2_log3", **shape))


def _is_narrow(width: object) -> bool:
    """Whether the formula, a fraction over width^width, is quickly written out."""
    return isinstance(width, int) and width <= 1000


def _comparison(witness: Quantity, formula: Quantity) -> dict[str, object]:
    assert isinstance(witness.value, int | Decimal)
    assert isinstance(formula.value, int | Fraction | Decimal)
    return {
        "compared_with": {
            "quantity": formula.name,
            "value": catalogue.as_json_value(formula.value),
            "status": formula.status,
        },
        "exceeds_formula": witness.value > formula.value,
    }


def _print_for_people(document: dict[str, object], verdict: Verdict | None) -> None:
    inputs = document["inputs"]
    assert isinstance(inputs, dict)
    given = ", ".join(f"{key}={_text(value)}" for key, value in inputs.items())
    typer.echo(f"{document['quantity']}({given}) = {_text(document['value'])}")
    typer.echo(f"  {ENTRIES[str(document['quantity'])].meaning}")
    typer.echo(f"  status: {document['status_line']}")
    typer.echo(f"  source: {document['source']}")
    typer.echo(f"  network: {document['network']}")
    if "exceeds_formula" in document:
        compared = document["compared_with"]
        assert isinstance(compared, dict)
        relation = "above" if document["exceeds_formula"] else "below"
        formula = f"{compared['quantity']} = {_text(compared['value'])}"
        typer.echo(f"  {relation} the papers' formula {formula}")
    if verdict is not None:
        print_verdict(verdict)


def print_verdict(verdict: Verdict) -> None:
    """Whether a disputed formula was refuted, and by which weights."""
    typer.echo(f"  {'REFUTED' if verdict.refuted else 'not refuted'}: {verdict.reason}")
    typer.echo(f"    formula: 3^{verdict.formula_log3}")
    if verdict.witness_log3 is not None:
        typer.echo(f"    best witness found: 3^{verdict.witness_log3}")
    if verdict.refuted:
        typer.echo("    the weights are in --json (plan, entry); check them with monomial_witness")


def _text(value: object) -> str:
    """A value in a line: long integers shortened, a plan by its length, an object by its parts."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(part)}" for key, part in value.items())
    if isinstance(value, list):
        return f"(a plan of {len(value)} layers)"
    return short_integer(str(value))


def _list_quantities(as_json: bool) -> None:
    if as_json:
        return print_json([_listed(entry) for entry in ENTRIES.values()])
    typer.echo(f"Quantities of the {catalogue.NETWORK}.")
    typer.echo("Example: archfit theory ub_stat L=3 d_x=4\n")
    for entry in ENTRIES.values():
        status = entry.basis.status_line.partition(",")[0]
        typer.echo(f"{entry.name} {' '.join(entry.takes)}  [{status}]\n    {entry.meaning}")
    return None


def _listed(entry: Entry) -> dict[str, object]:
    return {
        "quantity": entry.name,
        "inputs": entry.letters,
        "meaning": entry.meaning,
        "status": entry.basis.status_line,
        "source": entry.basis.source,
    }
