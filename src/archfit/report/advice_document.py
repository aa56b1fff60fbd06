"""An advice as a document: the answer, how sure it is, why, and how to make it again."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from archfit.advise.check import CheckRuns
from archfit.advise.design import untested
from archfit.advise.verdict import CheckResult, RankedResult
from archfit.plan.planner import Plan
from archfit.report import advice_words
from archfit.report.advice_words import counterpart, headline
from archfit.report.document import Command, Document, Figure, Section, Table
from archfit.report.fit_document import Origin, ends_words, provenance
from archfit.report.plan_document import plan_document, plan_figures

if TYPE_CHECKING:
    from archfit.report.charts.check import Trial

Json = dict[str, object]
SIZES = "loss-against-size"  # the figure of a sweep that shows depths crossing


@dataclass(frozen=True, kw_only=True, slots=True)
class AdvisedData:
    """The data that an advice is about."""

    name: str  # as people call its source
    folder: str
    description: Mapping[str, object]  # its data.json
    spectrum: Sequence[float]  # of co-occurrence, largest first


def advice_document(
    data: AdvisedData, plan: Plan, check: CheckResult | None, *, command: str, version: str
) -> Document:
    """What `archfit advise` says and its report holds; `command` is what was typed."""
    planned = plan_document(plan)
    made = (
        f"Made by {version}. Beside this page each chart lies as NAME.svg and .png, the config in "
        "model, and the check's records in its folder."
    )
    return Document(
        title=f"Which Transformer fits {data.name}?",
        headline=advice_words.answer(plan),
        sections=(
            _check_section(plan, check),
            Section(title="Why", sentences=tuple(advice_words.reasons(plan))),
            Section(
                title="What else the check says",
                sentences=() if check is None else check.conclusions,
                is_detail=True,
            ),
            Section(title="Figures", figures=tuple(_figures(data, plan, check)), is_detail=True),
            Section(title="Tables", tables=tuple(_tables(data, check)), is_detail=True),
            *(replace(part, is_detail=True) for part in planned.sections if not part.figures),
            Section(
                title="How to reproduce it",
                sentences=(*map(Command, _commands(plan, check, command)), made),
                tables=_provenance(check),
                is_detail=True,
            ),
        ),
        data={
            "data": {**data.description, "folder": data.folder},
            "plan": planned.data,
            "check": None if check is None else _check_json(plan, check),
        },
    )


def _check_section(plan: Plan, check: CheckResult | None) -> Section:
    """How sure the advice is; without a check, how to have one."""
    if check is None:
        title = headline(plan, None)
        return Section(title=title, sentences=(advice_words.UNCHECKED,), status="unchecked")
    runs, verdict = check.runs, check.verdict
    sentences = (
        *advice_words.check_sentences(plan, runs, verdict),
        *advice_words.limits_of(plan, runs, verdict),
    )
    return Section(title=headline(plan, verdict), sentences=sentences, status=verdict.status)


def _figures(data: AdvisedData, plan: Plan, check: CheckResult | None) -> Iterator[Figure]:
    from archfit.report.charts.check import cooccurrence_figure, curve_figure, difference_figure
    from archfit.report.charts.sweep import sweep_figures

    shapes, bounds = plan_figures(plan)
    if check is not None:
        trials = [_trial(check.runs, result) for result in check.verdict.results]
        yield difference_figure(trials)
        yield curve_figure(trials)
    yield shapes
    if check is not None and check.fits is not None:
        found = sweep_figures(check.fits, check.runs.data)
        yield from (figure for figure in found if figure.name == SIZES)
    yield bounds
    assert plan.request.data is not None
    spectrum = cooccurrence_figure(
        data.spectrum,
        rank=plan.request.data.cooccurrence_rank,
        limit=plan.request.limit.limit,
        width=plan.shape.width,
    )
    if spectrum is not None:
        yield spectrum


def _trial(runs: CheckRuns, result: RankedResult) -> "Trial":
    """A network of the check as charts show it: its runs, its interval, its learning curve."""
    from archfit.report.charts.check import Trial

    records, found = runs.of(result.network), result.against
    positions = result.cell.recipe.batch_sequences * result.cell.architecture.context
    steps = [evaluation.step for evaluation in records[0].evaluations if evaluation.step]
    bits_at = [
        {evaluation.step: evaluation.heldout_bits_per_byte for evaluation in record.evaluations}
        for record in records
    ]
    means = [sum(bits[step] for bits in bits_at) / len(records) for step in steps]
    return Trial(
        name=result.words,
        bits_per_byte=tuple(record.evaluations[-1].heldout_bits_per_byte for record in records),
        difference=(found.estimate.value if found else None) or 0.0,
        low=(found.estimate.low if found else None) or 0.0,
        high=(found.estimate.high if found else None) or 0.0,
        curve=tuple(zip((step * positions for step in steps), means, strict=True)),
    )


def _tables(data: AdvisedData, check: CheckResult | None) -> Iterator[Table]:
    if check is not None:
        runs = check.runs
        yield Table.of(
            "The networks of the check, the best first",
            check.verdict.results,
            {
                "network": lambda result: result.network.network.name,
                "depth": lambda result: str(result.cell.architecture.depth),
                "width": lambda result: str(result.cell.architecture.width),
                "parameters": lambda result: f"{result.cell.architecture.params:,}",
                "bits per byte": lambda result: f"{result.cell.bits_per_byte:.4f}",
                "difference": lambda result: (
                    f"{result.against.estimate.value:+.4f}" if result.against else ""
                ),
                "90 %": lambda result: (
                    ends_words(result.against.estimate) if result.against else ""
                ),
                "seeds": lambda result: str(result.cell.seeds),
                "at the plan's size": lambda result: counterpart(runs, result),
            },
        )
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
            ("SHA-256", str(described["data_hash"])),
        ),
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
        scale=check.runs.design.scale,
        labels=check.runs.data,
        planned=len(check.runs.records) + len(check.runs.failures),
    )
    return provenance(check.runs.records, [origin])


def _check_json(plan: Plan, check: CheckResult) -> Json:
    """What a check found: verdict, claims, networks with intervals, and how it was made."""
    runs, verdict, design = check.runs, check.verdict, check.runs.design
    return {
        "status": verdict.status,
        "headline": headline(plan, verdict),
        "sentences": advice_words.check_sentences(plan, runs, verdict),
        "claims": [asdict(claim) for claim in verdict.claims],
        "networks": [_network_json(runs, result) for result in verdict.results],
        "limits": list(advice_words.limits_of(plan, runs, verdict)),
        "conclusions": list(check.conclusions),
        "bottleneck_binds": verdict.binds,
        "share_of_plan": design.share,
        "steps": design.steps,
        "runs": len(runs.records),
        "failed": dict(runs.failures),
        "not_tested": {**runs.left_out, **dict.fromkeys(untested(plan), "needs the source")},
        "folder": str(check.folder),
    }


def _network_json(runs: CheckRuns, result: RankedResult) -> Json:
    shape, found = result.cell.architecture, result.against
    sizes = ("depth", "width", "params", "block_params")
    return {
        "name": result.network.network.name,
        "role": result.network.network.role,
        **{name: getattr(shape, name) for name in sizes},
        "bits_per_byte": result.cell.bits_per_byte,
        "seeds": result.cell.seeds,
        "difference": found and found.estimate.row("bits_per_byte"),
        "at_plan_size": counterpart(runs, result),
    }
