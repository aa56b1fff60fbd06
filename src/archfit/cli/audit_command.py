"""`archfit audit`: findings for configs, checkpoints and published models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from archfit import answers
from archfit.audit.auditor import AuditResult, audit_model
from archfit.audit.findings import IDS
from archfit.audit.zoo import zoo_models
from archfit.cli.shared import NAME, say, show, with_words
from archfit.report.audit_document import gallery_document
from archfit.report.page import save_page, version_line
from archfit.spec.errors import check_choice, refusal, refuse_if

WEIGHTS = {"high": 100, "medium": 10, "low": 1}  # of findings, to sort by
FOUND = 1  # exit status of a linter that found something
NUMBERS: dict[str, Callable[[AuditResult], float | None]] = {  # that models are sorted by
    "depth": lambda result: result.model.depth,
    "width": lambda result: result.model.width,
    "attention-ratio": lambda result: result.model.stacks[0].attention_ratio,
    "rank-ratio": lambda result: result.rank_ratio,
    "params": lambda result: result.model.parameters.total,
    "findings": lambda result: -sum(WEIGHTS[found.severity] for found in result.findings),
}
SORTS = ("name", "modality", *NUMBERS)


@with_words("audit", columns=SORTS, ids=IDS)
def audit(
    targets: list[str] | None = None,
    everything: bool = False,
    weights: bool = False,
    download: bool = False,
    fail_on: list[str] | None = None,
    sort: str = "name",
    chart: Path | None = None,
) -> None:
    """Is this model well shaped? Each finding has its evidence and a fix.

    --chart draws the gallery with --all, and the spectrum of the embedding with --weights.
    """
    if everything == bool(targets):
        raise refusal("audit-targets", what="--all and targets" if targets else "no target")
    refuse_if(everything and weights, "audit-weights")
    refuse_if(everything and download, "audit-download")
    refuse_if(chart is not None and not (everything or weights), "audit-chart")
    check_choice(SORTS, sort=sort)
    for name in fail_on or ():
        check_choice((*IDS, "any"), fail_on=name)
    failing = IDS if "any" in (fail_on or ()) else fail_on or ()
    if everything:
        models = sorted(map(audit_model, zoo_models()), key=lambda result: _key(result, sort))
        document = gallery_document(models, version_line())
    else:
        found = answers.audit(*(targets or []), weights=weights, download=download)
        models, document = [*found.value], found.document
    figure = "models" if everything else "spectrum"
    if chart is not None and everything and chart.suffix.lower() == ".html":
        save_page(document, chart)
        figure = ""
    show(document, chart=chart, figure=figure)
    caught = [
        f"{result.model.name}: {finding.id}"
        for result in models
        for finding in result.findings
        if finding.id in failing
    ]
    if caught:
        say(f"{NAME}: --fail-on: {'; '.join(caught)}")
        raise typer.Exit(FOUND)


def _key(result: AuditResult, sort: str) -> tuple[bool, float, str]:
    """What is not known comes last, equals by name."""
    name = result.model.name.lower()
    if sort in NUMBERS:
        number = NUMBERS[sort](result)
        return number is None, float(number or 0), name
    modality = f"{result.model.modality or ''} {name}".lower()
    return False, 0.0, modality if sort == "modality" else name
