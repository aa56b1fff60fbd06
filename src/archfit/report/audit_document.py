"""An audit as a document: what was found in a model, and the gallery of published ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from archfit.audit.auditor import AuditResult, checked_claims
from archfit.audit.findings import RULES, SEVERITIES, TOKENS, judged_size
from archfit.audit.model import TABLES, UNBOUNDED
from archfit.fit.cells import grouped
from archfit.report.document import Command, Document, Figure, Section, Table, facts, json_of, said

MOST_NAMED = 3  # models beside each finding


def audit_document(models: Sequence[AuditResult]) -> Document:
    """What `archfit audit` says of the models that were named."""
    spectra = [result for result in models if result.spectrum is not None]
    ranks = "; ".join(said("audit.spectrum", result) for result in spectra)
    drawn = [Figure.of("spectrum", ranks, spectra)] if spectra else []
    each = [headline(result) for result in models]
    worst = [found.severity for result in models for found in result.findings]
    return Document(
        title=", ".join(result.model.name for result in models),
        headline=each[0] if len(models) == 1 else gallery_summary(models),
        sections=(
            Section.of(*(each if len(models) > 1 else _bottleneck(models[0]))),
            *(part for one in models for part in model_sections(one, is_one=len(models) == 1)),
            Section.of(*drawn, is_detail=True),
        ),
        data=[audit_json(result) for result in models],
        status=min(worst, key=SEVERITIES.index, default=""),
    )


def audit_json(result: AuditResult) -> dict[str, Any]:
    """What --json prints of one model."""
    measured, spectrum = None, result.spectrum
    if spectrum is not None:
        points = [{"index": at, "singular_value": value} for at, value in spectrum.points()]
        measured = json_of("spectrum", spectrum, points=points)
    return json_of("audit", result, first=result.model.stacks[0], measured=measured)


def headline(result: AuditResult) -> str:
    """What was found in one model."""
    same = grouped(result.findings, lambda found: found.id).items()
    named = (f"{id_} ({', '.join(found.stack for found in some)})" for id_, some in same)
    return f"{result.model.name}: {'; '.join(named) or _nothing_found(result)}"


def model_sections(result: AuditResult, *, is_one: bool = True) -> tuple[Section, ...]:
    """Each finding with its fix and evidence, then the model's sizes and what is not known.

    Of one among several models each finding begins with its name."""
    model, name = result.model, "" if is_one else f"{result.model.name}: "
    once = grouped(result.findings, lambda found: replace(found, stack=""))  # where stacks share it
    findings, why = [], []
    for found, same in once.items():
        where = [each.stack for each in same]
        share = said("audit.share", found.redundancy)
        title = said("audit.finding", found, name=name, stacks=where, share=share)
        fact, _, rest = found.evidence.partition(". ")
        fix = f"Fix: {found.fix}."
        findings.append(Section.of(f"{fact}.", fix, title=title, status=found.severity))
        why += [Section.of(f"{rest}.", title=f"{name}Why {found.id}", is_why=True)] if rest else []
    sizes = [said("audit.stack", stack) for stack in model.stacks]
    told = [f"Taken from defaults: {each}" for each in model.assumed]
    told += [f"Not found: {each}" for each in model.missing]
    told += [f"Note: {each}" for each in model.notes]
    table = Table(title=model.name, columns=("", ""), rows=tuple(_facts(result)))
    return (
        *findings,
        *why,
        Section.of(*sizes, said("audit.size", model.parameters), is_why=not is_one),
        Section.of(table, is_why=True),
        Section.of(*told, is_why=True),
    )


def _nothing_found(result: AuditResult) -> str:
    """What was looked at and is well, and what could not be judged."""
    model, first = result.model, result.model.stacks[0]
    unknown = {
        "the rank of the input": result.rank_ratio is None and model.input.kind not in UNBOUNDED,
        "attention": first.attention_ratio is None or "heads" in model.doubtful,
        "depth": first.depth is None,
    }
    missing = [what for what, is_unknown in unknown.items() if is_unknown]
    if missing:
        return said("audit.unjudged", missing)
    if judged_size(model, first) is None:
        return said("audit.small")
    tokens = said("audit.would", TOKENS[0])
    if model.training_tokens and model.parameters.total:
        each = f"{model.training_tokens / model.parameters.total:.2g}"
        tokens = said("audit.trained", f"{each} token{'s' * (each != '1')}")
    far = "" if first.role == "decoder" else said("audit.far")
    return said("audit.good", tokens=tokens, far=far)


def _bottleneck(result: AuditResult) -> Iterator[str]:
    """What the papers would find, and we do not."""
    model, limit = result.model, result.model.rank_limit
    is_found = any("bottleneck" in found.id or "rank" in found.id for found in result.findings)
    if limit is not None and limit < model.width and not is_found:
        kind = "vocabulary" if model.input.kind in TABLES else "patch"
        yield said("plan.bottleneck", kind=kind, limit=limit, width=model.width)


def _facts(result: AuditResult) -> Iterator[tuple[str, str]]:
    model, source = result.model, result.model.input
    real = "" if source.vocab_real is None else f", of which {source.vocab_real:,} occur"
    yield from facts("audited_input", model, kind=source.kind.replace("_", " "), real=real)
    if result.spectrum is not None:
        yield from facts("audited_spectrum", result.spectrum)
    yield from facts("published_size", model)


def models_table(models: Sequence[AuditResult]) -> Table:
    """A row for each model, its findings by their short names; what is not known is empty."""
    return Table.of(
        "models",
        models,
        title=f"{len(models)} published Transformers",
        modality=lambda result: (result.model.modality or "").replace("_", " "),
        short=lambda result: " ".join(
            dict.fromkeys(RULES[found.id]["short"] for found in result.findings)
        ),
    )


def gallery_document(models: Sequence[AuditResult], version: str) -> Document:
    """Every model of the built-in table, beside what the papers say about them."""
    findings = [(result, found) for result in models for found in result.findings]
    return Document(
        title=f"{len(models)} published Transformers, audited",
        headline=gallery_summary(models),
        sections=(
            Section.of(*_named(models)),
            Section.next(
                Command("archfit audit NAME"),
                Command("archfit audit NAME --fail-on FINDING  # one of these, for scripts"),
                Command("archfit audit --all --chart gallery.html"),
            ),
            Section.of(f"Made by {version}.", is_detail=True),
            Section.of(Table.of("claims", checked_claims(models)), is_why=True),
            Section.of(gallery_figure(models), is_detail=True),
            Section.of(models_table(models), is_why=True),
            Section.of(Table.of("findings", findings), title="Findings", is_detail=True),
        ),
        data=[audit_json(result) for result in models],
    )


def gallery_summary(models: Sequence[AuditResult]) -> str:
    """How many models have which bottleneck."""
    counts = Counter(id_ for result in models for id_ in {found.id for found in result.findings})
    found = [f"{count} with {id_}" for id_, count in counts.most_common()]
    clean = sum(not result.findings for result in models)
    return said("audit.all", len(models), [*found, f"{clean} without a finding"])


def _named(models: Sequence[AuditResult]) -> Iterator[str]:
    """Each finding with some of the models that have it, the severest first."""
    for id_ in RULES:
        having = [
            (SEVERITIES.index(found[0].severity), result.model.name)
            for result in models
            if (found := [each for each in result.findings if each.id == id_])
        ]
        if having:
            names = [name for _, name in sorted(having, key=lambda each: each[0])]
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            yield f"{id_}: {', '.join(names[:MOST_NAMED])}{more}."


def gallery_figure(models: Sequence[AuditResult]) -> Figure:
    """Shapes and bottlenecks of all."""
    return Figure.of("models", said("audit.gallery", len(models)), models)
