"""`archfit audit`: findings for configs, checkpoints and published models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archfit.audit.audited import Audited, audit_json, audited
from archfit.audit.auditor import audit_target
from archfit.audit.findings import IDS
from archfit.audit.model import UNBOUNDED
from archfit.audit.zoo import zoo_models
from archfit.cli.output import print_json, print_table
from archfit.cli.version import version_line

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORT = {  # a line of the gallery holds three of them
    "vocabulary-bottleneck": "vocabulary",
    "low-rank-embedding": "low-rank",
    "patch-bottleneck": "patch",
    "attention-bottleneck": "attention",
    "below-depth-threshold": "threshold",
    "deeper-than-law": "deeper",
    "shallower-than-law": "shallower",
}
FOUND = 1  # exit status of a linter that found something
SORTS = (
    "name",
    "modality",
    "depth",
    "width",
    "attention-ratio",
    "rank-ratio",
    "params",
    "findings",
)


def audit(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET…",
            help="A published model's name, config.json, folder, .safetensors, or org/name in "
            "the local Hugging Face cache.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="The gallery: every model of the built-in table.")
    ] = False,
    weights: Annotated[
        bool, typer.Option("--weights", help="Measure the rank of the stored embedding.")
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Exit with status 1 on this finding (or any); repeatable."),
    ] = None,
    sort: Annotated[str, typer.Option(help=f"--all by {', '.join(SORTS)}.")] = "name",
    chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="--all: the gallery; --weights: the spectrum. .html .svg .png"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """What a model's shape wastes, with evidence and a fix."""
    _check_options(targets or [], everything, weights, chart, sort)
    wanted = _wanted(fail_on or [])
    models = (
        _gallery(sort)
        if everything
        else [audit_target(word, measure=weights, environment=os.environ) for word in targets or []]
    )
    if chart is not None:
        _draw(models, chart, everything)
    if as_json:
        print_json([audit_json(one) for one in models])
    elif everything:
        _print_gallery(models)
    else:
        for one in models:
            _print_one(one)
    if chart is not None and not as_json:
        typer.echo(f"Chart: {chart}")
    _fail(models, wanted)


def _check_options(
    targets: list[str], everything: bool, weights: bool, chart: Path | None, sort: str
) -> None:
    if everything == bool(targets):
        what = "--all and targets" if targets else "no target"
        raise ValueError(
            f"{what} given; name a model (archfit audit gpt2), a config.json, a folder or a "
            ".safetensors file, or use --all alone"
        )
    if everything and weights:
        raise ValueError("--weights needs a checkpoint, and --all has none; name a file or folder")
    if sort not in SORTS:
        raise ValueError(f"--sort {sort!r} is unknown; use one of {', '.join(SORTS)}")
    if chart is not None:
        from archfit.report.chart_file import check_chart_file

        check_chart_file(chart)
        if not everything and not weights:
            raise ValueError("--chart draws the gallery or a spectrum; add --all or --weights")


def _wanted(ids: list[str]) -> set[str]:
    for id_ in ids:
        if id_ not in (*IDS, "any"):
            raise ValueError(f"--fail-on {id_!r} is no finding; use any, {', '.join(IDS)}")
    return set(IDS) if "any" in ids else set(ids)


def _gallery(sort: str) -> list[Audited]:
    models = [audited(model) for model in zoo_models()]
    return sorted(models, key=lambda one: _key(one, sort))


def _key(one: Audited, sort: str) -> tuple[bool, float, str]:
    """What is not known comes last, equals by name."""
    model = one.model
    numbers = {
        "depth": model.depth,
        "width": model.width,
        "attention-ratio": model.stacks[0].attention_ratio,
        "rank-ratio": one.rank_ratio,
        "params": model.parameters.total,
        "findings": -sum({"high": 100, "medium": 10, "low": 1}[f.severity] for f in one.findings),
    }
    if sort in numbers:
        number = numbers[sort]
        return number is None, float(number or 0), model.name.lower()
    return (
        False,
        0.0,
        f"{model.modality or ''} {model.name}".lower()
        if sort == "modality"
        else (model.name.lower()),
    )


def _draw(models: Sequence[Audited], chart: Path, everything: bool) -> None:
    from archfit.report.chart_file import save_chart

    if not everything:
        from archfit.report.spectrum_chart import spectrum_chart

        return save_chart(spectrum_chart(models), chart)
    if chart.suffix.lower() == ".html":
        from archfit.report.gallery_page import write_gallery

        return write_gallery(models, chart, version_line())
    from archfit.report.gallery_chart import gallery_chart

    return save_chart(gallery_chart(models), chart)


def _fail(models: Sequence[Audited], wanted: set[str]) -> None:
    caught = [
        f"{one.model.name}: {finding.id}"
        for one in models
        for finding in one.findings
        if finding.id in wanted
    ]
    if caught:
        typer.echo(f"archfit: --fail-on: {'; '.join(caught)}", err=True)
        raise typer.Exit(FOUND)


def _print_gallery(models: Sequence[Audited]) -> None:
    from archfit.audit.claims import checked_claims

    print_table(
        f"{len(models)} published Transformers",
        ("model", "depth", "width", "att.", "rank", "params", "findings"),
        [
            (
                one.model.name,
                _whole(one.model.depth),
                _whole(one.model.width),
                _ratio(one.model.stacks[0].attention_ratio),
                _ratio(one.rank_ratio),
                _short(one.model.parameters.total),
                " ".join(dict.fromkeys(SHORT[found.id] for found in one.findings)),
            )
            for one in models
        ],
    )
    print_table(
        "What Wies et al. 2021 say about them",
        ("model", "they say", "this audit", "verdict"),
        [(c.model, c.says, c.found, c.verdict) for c in checked_claims(models)],
    )


def _print_one(one: Audited) -> None:
    model = one.model
    print_table(model.name, ("quantity", "value"), _facts(one))
    for finding in one.findings:
        share = "" if finding.redundancy is None else f", {finding.redundancy} redundant"
        typer.echo(f"[{finding.severity}] {finding.id} ({finding.stack}){share}")
        typer.echo(f"    {finding.evidence}.")
        typer.echo(f"    Fix: {finding.fix}.")
    if not one.findings:
        typer.echo(_nothing_found(one))
    for words, sentences in (
        ("Taken from defaults", model.assumed),
        ("Not found", model.missing),
        ("Note", model.notes),
    ):
        for sentence in sentences:
            typer.echo(f"{words}: {sentence}")


def _nothing_found(one: Audited) -> str:
    """What was looked at and is well, and what could not be judged."""
    first = one.model.stacks[0]
    unknown = {
        "the rank of the input": one.rank_ratio is None and one.model.input.kind not in UNBOUNDED,
        "attention": first.attention_ratio is None or "heads" in one.model.doubtful,
        "depth": first.depth is None,
    }
    missing = [what for what, is_unknown in unknown.items() if is_unknown]
    if missing:
        return f"Nothing found, but {' and '.join(missing)} cannot be judged: sizes are not known."
    return "Nothing found: no bottleneck, and depth within 1.5 times the law."


def _facts(one: Audited) -> list[tuple[str, str]]:
    model = one.model
    rows = [
        (
            f"{stack.role} stack",
            f"{_whole(stack.depth)} layers x {stack.width:,}, {_whole(stack.heads)} heads of "
            f"{_whole(stack.head_dim)} (ratio {_ratio(stack.attention_ratio)})",
        )
        for stack in model.stacks
    ]
    rows += [
        ("source", model.origin),
        ("input", model.input.kind.replace("_", " ")),
        ("vocabulary", _vocabulary(one)),
        ("rank limit", f"{_whole(model.rank_limit)} of width {model.width:,}"),
    ]
    if one.spectrum is not None:
        spectrum = one.spectrum
        rows += [
            (
                "measured rank",
                f"{spectrum.numerical_rank:,} (values above {spectrum.tolerance:.3g})",
            ),
            ("stable rank", f"{spectrum.stable_rank:.2f}"),
            ("effective rank", f"{spectrum.effective_rank:.2f}"),
            ("rows left out", f"{spectrum.padded_rows:,} of {spectrum.rows:,} are padding"),
            ("read", f"{spectrum.bytes_read:,} bytes: {', '.join(spectrum.tensors)}"),
        ]
    parts = model.parameters
    split = f"{_whole(parts.blocks)} in blocks, {_whole(parts.embedding)} in tables"
    rows.append(("parameters", f"{_whole(parts.total)} ({split})"))
    if model.published_params is not None:
        rows.append(("published", f"{model.published_params:,}"))
    return rows


def _vocabulary(one: Audited) -> str:
    source = one.model.input
    real = "" if source.vocab_real is None else f", of which {source.vocab_real:,} occur"
    return f"{_whole(source.vocab)}{real}"


def _whole(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _ratio(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"


def _short(value: int | None) -> str:
    if value is None:
        return "?"
    for size, letter in ((10**9, "B"), (10**6, "M")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:,}"
