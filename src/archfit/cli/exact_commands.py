"""`archfit measure` and `witness`: separation ranks in exact arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from archfit import answers
from archfit.cli.shared import bar, show, with_words
from archfit.cli.theory_commands import parse_input
from archfit.exact.measure import Machine, MeasureOptions
from archfit.exact.prime_field import WITNESS_PRIME
from archfit.exact.rank_claims import claims, growth_experiments
from archfit.exact.witness import check_witness
from archfit.exact.witness_kinds import KINDS, WitnessRequest, build_witness
from archfit.report import measure_document as documents
from archfit.report.document import Document
from archfit.report.theory_document import witness_document
from archfit.spec.errors import check_choice, refuse_if
from archfit.theory.catalogue import as_plan

LIST = "list"  # of claims
FAILED = 1  # exit status of a witness that is not what was promised


@with_words("measure", MeasureOptions)
def measure(
    prime: list[int] | None = None,
    device: str = "cpu",
    limit: float = 10.0,
    claim: str | None = None,
    chart: Path | None = None,
    **options: Any,
) -> None:
    """Measure the separation rank of a small network, in exact arithmetic modulo primes.

    --chart draws --claim growth.
    """
    refuse_if(chart is not None and claim != documents.GROWTH, "measure-chart", chart=chart)
    if claim is not None:
        is_own = options["depth"] is None and options["width"] is None
        refuse_if(not is_own, "claim-shape", claim=claim)
        machine = Machine(device, limit, tuple(prime or ()))
        return show(_claim(claim, machine), chart=chart, figure=documents.GROWTH)
    with bar("evaluating") as progress:
        found = answers.measure(
            device=device, limit=limit, primes=prime or (), progress=progress, **options
        )
    return show(found.document)


def _claim(name: str, machine: Machine) -> Document:
    """All cases of a claim, measured."""
    if name == LIST:
        return documents.claims_document()
    known = {claim.name: claim for claim in claims()}
    check_choice((*known, documents.GROWTH, LIST), claim=name)
    with bar("evaluating") as progress:
        if name != documents.GROWTH:
            claim = known[name]
            groups = [[machine.measure(case, progress) for case in group] for group in claim.groups]
            return documents.claim_document(claim, groups)
        cases = growth_experiments(machine.kind, **machine.limits)
        return documents.growth_document([machine.measure(case, progress) for case in cases])


@with_words("witness", WitnessRequest, kinds=KINDS)
def witness(
    kind: str = "simplified",
    plan: str | None = None,
    prime: int = WITNESS_PRIME,
    **options: Any,
) -> None:
    """Build explicit weights that reach a lower bound, and check their separation rank."""
    given = None if plan is None else as_plan(*parse_input(f"plan={plan}"))
    request = WitnessRequest(kind=kind, plan=given, **options)
    check = check_witness(build_witness(request, prime=prime))
    show(witness_document(check))
    if not check.verified:
        raise typer.Exit(FAILED)
