"""`archfit witness`: weights that reach a lower bound, built, run and checked."""

from dataclasses import asdict
from typing import Annotated

import typer

from archfit.cli.options import size_option
from archfit.cli.output import print_json, print_table, short_integer
from archfit.cli.theory_command import parse_input
from archfit.exact.residues import WITNESS_PRIME
from archfit.exact.witness import Recipe, WitnessCheck, build_witness, check_witness
from archfit.exact.witness_kinds import KINDS, Wanted, recipe_for
from archfit.theory.catalogue import as_plan

FAILED = 1


def witness(
    depth: Annotated[int, typer.Option(parser=size_option, metavar="L", help="Number of layers.")],
    width: Annotated[int, typer.Option(parser=size_option, metavar="D", help="Residual stream.")],
    heads: Annotated[int, typer.Option(parser=size_option, metavar="H", help="Heads in a layer.")],
    kind: Annotated[
        str, typer.Option(metavar="KIND", help=f"One of {', '.join(KINDS)}.")
    ] = "simplified",
    positions: Annotated[
        int | None, typer.Option(parser=size_option, metavar="N", help="Default: few that do.")
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="R", help="Of the embedding. Default: the most."),
    ] = None,
    vocab: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="V", help="Tokens. Default: the fewest that do."),
    ] = None,
    patch: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="K", help="Vectors of a patch. Default: 2."),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(parser=size_option, metavar="C", help="Numbers of a patch's vector."),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(metavar="PLAN", help="Of a monomial: JSON, or example. Default: a search."),
    ] = None,
    entry: Annotated[
        int | None, typer.Option(parser=size_option, metavar="E", help="Output coordinate read.")
    ] = None,
    prime: Annotated[
        int, typer.Option(parser=size_option, metavar="P", help="All is exact modulo this.")
    ] = WITNESS_PRIME,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """The weights of a lower bound on the separation rank, run and compared with their promise."""
    wanted = Wanted(
        kind=kind,
        depth=depth,
        width=width,
        heads=heads,
        positions=positions,
        rank=rank,
        vocab=vocab,
        patch=patch,
        channels=channels,
        plan=None if plan is None else as_plan(*parse_input(f"plan={plan}")),
        entry=entry,
    )
    recipe = recipe_for(wanted)
    check = check_witness(build_witness(recipe, prime=prime))
    if as_json:
        print_json(check.as_json() | {"inputs": _inputs(recipe)})
    else:
        _print_for_people(check)
    if not check.verified:
        raise typer.Exit(FAILED)


def _inputs(recipe: Recipe) -> dict[str, object]:
    """All that fixes the witness, the sizes that were left to its kind among them."""
    values = asdict(recipe)
    shape: dict[str, object] = values.pop("shape")
    return shape | values


def _print_for_people(check: WitnessCheck) -> None:
    found, shape = check.witness, check.witness.shape
    rows, columns = check.size
    total = rows * columns
    runs = "all" if check.extent == "all" else f"a random {check.entries_checked:,} of"
    expected = short_integer(str(found.expected_rank))
    lines = [
        ("promised output", found.promise.formula),
        ("entries run", f"{runs} {total:,} ({rows:,} x {columns:,})"),
        ("entries wrong", f"{check.entries_wrong:,}"),
        ("expected rank", expected),
        ("measured rank", _measured(check)),
        ("lower bound", f"{found.bound_id} = {short_integer(str(found.bound))}"),
        ("modulo", f"{found.prime}"),
    ]
    if check.measured_embedding_rank is not None:
        lines.insert(5, ("rank of the embedding", f"{check.measured_embedding_rank}"))
    print_table(
        f"The {found.kind} witness at depth {shape.depth}, width {shape.width}, heads "
        f"{shape.heads}, on {shape.positions} positions",
        ("", ""),
        lines,
    )
    typer.echo(_sentence(check, expected))


def _measured(check: WitnessCheck) -> str:
    if check.measured_rank is None:
        return "not measured: too large"
    return f"{check.measured_rank:,}" + ("" if check.extent == "all" else " (of promised values)")


def _sentence(check: WitnessCheck, expected: str) -> str:
    if not check.verified:
        return "NOT verified: the network or its rank is not what was promised."
    if check.measured_rank is None:
        return (
            "Verified: the network computes its promise at every pair run; the separation rank "
            f"{expected} follows from it (docs/theory.md)."
        )
    return (
        f"Verified: these weights have separation rank {expected} or more, and so have almost all "
        "weights of this shape."
    )
