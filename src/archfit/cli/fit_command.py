"""`archfit fit`: what folders of runs say."""

from pathlib import Path
from typing import Annotated

import typer

from archfit.cli.output import print_json, print_table
from archfit.evidence.document import document_of as evidence_document
from archfit.evidence.document import rows_of
from archfit.evidence.finding import Finding
from archfit.evidence.findings import all_findings
from archfit.evidence.records import read_evidence
from archfit.fit.conclusions import conclusions, short_size
from archfit.fit.document import document_of
from archfit.fit.fitted import Fits, fitted
from archfit.fit.reading import read_folders


def fit(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR…", help="Folders of runs on the same data."),
    ] = None,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Of the runs that ship with archfit: what they say about the papers' findings.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Crossing points, redundancies and laws from runs, with 90 % intervals."""
    if evidence == bool(folders):
        given = (
            "folders and --evidence are both" if folders else "neither folders nor --evidence is"
        )
        raise ValueError(
            f"{given} given; name folders of runs, or give --evidence alone for the runs that ship "
            "with archfit"
        )
    if evidence:
        return _fit_evidence(as_json)
    fits = fitted(read_folders(folders or []))
    if as_json:
        return print_json(document_of(fits))
    return _print_for_people(fits)


def _fit_evidence(as_json: bool) -> None:
    shipped = read_evidence()
    findings = all_findings(shipped)
    if as_json:
        return print_json(evidence_document(shipped, findings) | rows_of(shipped))
    for finding in findings:
        _print_finding(finding)
    return None


def _print_finding(finding: Finding) -> None:
    typer.secho(f"{finding.question}. {finding.asks}", bold=True)
    if finding.paper:
        typer.echo(f"   paper: {finding.paper}")
    for measure in finding.measures:
        typer.echo(f"   {measure.what}: {measure}; {measure.seeds} seeds")
    typer.echo(f"   {finding.verdict.upper()}: {finding.because} [{', '.join(finding.sweeps)}]\n")


def _print_for_people(fits: Fits) -> None:
    if fits.crossings:
        print_table(
            "Depths at equal size",
            ("depths", "verdict", "size", "90 %", "seeds"),
            [
                (
                    f"{item.shallow.depth} and {item.deep.depth}",
                    item.verdict,
                    _size(item.size),
                    f"{_size(item.low)} to {_size(item.high)}" if item.is_crossing else "",
                    str(item.seeds),
                )
                for item in fits.crossings
            ],
        )
    if fits.redundancy:
        print_table(
            "Redundancy",
            ("bottleneck", "ratio", "depth", "width", "saved", "90 %", "seeds"),
            [
                (
                    "+".join(item.bottleneck),
                    f"{item.ratio:.3g}",
                    str(item.family.depth),
                    str(item.cell.architecture.width),
                    _share(item.value),
                    f"{_share(item.low)} to {_share(item.high)}",
                    str(item.seeds),
                )
                for item in fits.redundancy
            ],
        )
    for sentence in conclusions(fits):
        typer.echo(sentence)


def _size(size: float | None) -> str:
    return "…" if size is None else short_size(size)


def _share(share: float | None) -> str:
    return "…" if share is None else f"{share:.1%}"
