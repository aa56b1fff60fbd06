"""What the report of an advice holds."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from archfit.advise.check import CheckRuns
from archfit.advise.request import AdviceRequest
from archfit.advise.verdict import CheckResult, RankedResult
from archfit.advise.words import (
    UNCHECKED,
    answer,
    check_sentences,
    counterpart,
    headline,
    limits_of,
    reasons,
)
from archfit.data.prepared import PreparedData
from archfit.data.sources import is_sample
from archfit.data.statistics import normalised_spectrum
from archfit.plan.planner import Plan
from archfit.report.advice_page import AdviceReport
from archfit.report.check_chart import Trial, curve_figure, standing_figure
from archfit.report.cooccurrence_chart import cooccurrence_figure
from archfit.report.plan_figures import bounds_figure, iso_parameter_figure
from archfit.report.provenance import Origin, provenance
from archfit.report.sweep_figures import sweep_figures
from archfit.report.sweep_look import Figure
from archfit.report.sweep_tables import Table
from archfit.spec import Evaluation

SIZES = "loss-against-size"  # the figure of a sweep that shows depths crossing


def advice_report(
    request: AdviceRequest,
    data: PreparedData,
    plan: Plan,
    check: CheckResult | None,
    *,
    command: str,
    version: str,
) -> AdviceReport:
    """The page of an advice; `command` is what was typed."""
    checked: tuple[str, ...] = (UNCHECKED,)
    further: tuple[str, ...] = ()
    if check is not None:
        checked = tuple(check_sentences(plan, check.trained, check.verdict))
        further = (*limits_of(plan, check.trained, check.verdict), *check.conclusions)
    return AdviceReport(
        title=f"Which Transformer fits {_name(request)}?",
        answer=answer(plan),
        status=check.verdict.status if check else "unchecked",
        headline=headline(plan, check.verdict if check else None),
        check=checked,
        further=further,
        reasons=tuple(reasons(plan)),
        plan=plan,
        figures=tuple(_figures(plan, data, check)),
        tables=tuple(_tables(data, check)),
        commands=tuple(_commands(plan, check, command)),
        provenance=_provenance(check),
        version=version,
    )


def _name(request: AdviceRequest) -> str:
    if is_sample(request.source.words):
        return "the English sample"
    return Path(request.source.words).name or Path(request.source.words).resolve().name


def _figures(plan: Plan, data: PreparedData, check: CheckResult | None) -> Iterator[Figure]:
    if check is not None:
        trials = [_trial(check.trained, one) for one in check.verdict.standings]
        yield standing_figure(trials)
        yield curve_figure(trials)
    yield iso_parameter_figure(plan)
    if check is not None and check.fits is not None:
        found = sweep_figures(check.fits, check.trained.data)
        yield from (figure for figure in found if figure.name == SIZES)
    yield bounds_figure(plan)
    facts = plan.request.data
    assert facts is not None
    spectrum = cooccurrence_figure(
        normalised_spectrum(data.tokens("train")),
        rank=facts.cooccurrence_rank,
        limit=plan.request.limit.limit,
        width=plan.shape.width,
    )
    if spectrum is not None:
        yield spectrum


def _trial(trained: CheckRuns, standing: RankedResult) -> Trial:
    records = trained.of(standing.network)
    found = standing.against
    recipe, shape = standing.cell.recipe, standing.cell.architecture
    positions = recipe.batch_sequences * shape.context
    steps = [evaluation.step for evaluation in records[0].evaluations if evaluation.step]
    means = [
        sum(_bits_at(record.evaluations, step) for record in records) / len(records)
        for step in steps
    ]
    return Trial(
        name=standing.words,
        bits_per_byte=tuple(one.evaluations[-1].heldout_bits_per_byte for one in records),
        difference=found.bits_per_byte if found else 0.0,
        low=found.low if found else 0.0,
        high=found.high if found else 0.0,
        curve=tuple(zip((step * positions for step in steps), means, strict=True)),
    )


def _bits_at(evaluations: tuple[Evaluation, ...], step: int) -> float:
    return next(one.heldout_bits_per_byte for one in evaluations if one.step == step)


def _tables(data: PreparedData, check: CheckResult | None) -> Iterator[Table]:
    if check is not None:
        yield Table(
            title="The networks of the check, the best first",
            columns=("network", "depth", "width", "parameters", "bits per byte", "difference",
                     "90 %", "seeds", "at the plan's size"),
            rows=tuple(_row(check, one) for one in check.verdict.standings),
        )  # fmt: skip
    described = data.description
    yield Table(
        title="The data",
        columns=("quantity", "value"),
        rows=(
            ("kind", f"{described['kind']} as {described['vocabulary']}"),
            ("documents", f"{described['documents']:,}"),
            ("tokens", f"{described['tokens']:,}"),
            ("vocabulary", f"{described['vocab']:,}, of which {described['used_vocab']:,} used"),
            ("bytes a token", f"{described['bytes_per_token']:.3f}"),
            ("unigram entropy", f"{described['unigram_entropy_bits']:.3f} bits a token"),
            ("SHA-256", data.data_hash),
        ),
    )


def _row(check: CheckResult, standing: RankedResult) -> tuple[str, ...]:
    shape, found = standing.cell.architecture, standing.against
    return (
        standing.network.network.name,
        str(shape.depth),
        str(shape.width),
        f"{shape.params:,}",
        f"{standing.cell.bits_per_byte:.4f}",
        f"{found.bits_per_byte:+.4f}" if found else "",
        f"{found.low:+.4f} to {found.high:+.4f}" if found else "",
        str(standing.cell.seeds),
        counterpart(check.trained, standing),
    )


def _commands(plan: Plan, check: CheckResult | None, command: str) -> Iterator[str]:
    yield command
    if check is not None:
        folder = shlex.quote(str(check.folder))
        yield f"archfit fit {folder}"
        yield f"archfit report {folder} --out sweep.html"
    if plan.export_command is not None:
        yield plan.export_command
    yield from (repair.command for repair in plan.repairs)


def _provenance(check: CheckResult | None) -> tuple[Table, ...]:
    if check is None:
        return ()
    origin = Origin(
        folder=str(check.folder),
        name="advise-check",
        scale=check.trained.design.scale,
        question="",
        labels=check.trained.data,
        planned=len(check.trained.records) + len(check.trained.failures),
    )
    return provenance(check.trained.records, [origin])
