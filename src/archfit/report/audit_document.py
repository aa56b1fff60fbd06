"""An audit as a document: what was found in a model, and the gallery of published ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from archfit.audit.auditor import AuditResult, audit_json, checked_claims
from archfit.audit.findings import RULES, Finding
from archfit.audit.model import UNBOUNDED
from archfit.report.document import Document, Figure, Section, Table, facts, loaded

SHORT = {rule.id: rule.short for rule in RULES}
RATIOS = ("attention ratio", "rank ratio", "million parameters")  # that a terminal has room for


def audit_document(models: Sequence[AuditResult]) -> Document:
    """What `archfit audit` says of the models that were named."""
    spectra = [result for result in models if result.spectrum is not None]
    drawn = (_spectrum_figure(spectra),) if spectra else ()
    return Document(
        title=", ".join(result.model.name for result in models),
        sections=(
            *(section for result in models for section in model_sections(result)),
            Section.of("", *drawn, is_detail=True),
        ),
        data=[audit_json(result) for result in models],
    )


def model_sections(result: AuditResult) -> tuple[Section, ...]:
    """Each finding with its evidence and fix, then the model's sizes and what is not known."""
    model = result.model
    remarks = {
        "Taken from defaults": model.assumed,
        "Not found": model.missing,
        "Note": model.notes,
    }
    table = Table(title=model.name, columns=("quantity", "value"), rows=tuple(_facts(result)))
    found = [_finding_section(model.name, finding) for finding in result.findings]
    said = [f"{words}: {each}" for words, sentences in remarks.items() for each in sentences]
    return (
        *(found or [Section.of(model.name, _nothing_found(result))]),
        Section.of("", table),
        *([Section.of("", *said)] if said else []),
    )


def _finding_section(model: str, found: Finding) -> Section:
    share = "" if found.redundancy is None else f", {found.redundancy} redundant"
    title = f"{model}: [{found.severity}] {found.id} ({found.stack}){share}"
    sentences = f"{found.evidence}.", f"Fix: {found.fix}."
    return Section.of(title, *sentences, status=found.severity)


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
        return f"Nothing found, but {' and '.join(missing)} cannot be judged: sizes are not known."
    return "Nothing found: no bottleneck, and a depth as good as any, as far as is known."


def _facts(result: AuditResult) -> Iterator[tuple[str, str]]:
    model, source = result.model, result.model.input
    for stack in model.stacks:
        yield from facts("audited_stack", stack)
    real = "" if source.vocab_real is None else f", of which {source.vocab_real:,} occur"
    yield from facts("audited_input", model, kind=source.kind.replace("_", " "), real=real)
    if result.spectrum is not None:
        yield from facts("audited_spectrum", result.spectrum)
    yield from facts("audited_size", model.parameters)
    if model.published_params is not None:
        yield "published", f"{model.published_params:,}"


def _spectrum_figure(models: Sequence[AuditResult]) -> Figure:
    measured = [(result.model.name, result.spectrum) for result in models]
    ranks = [f"{name}: rank {found.numerical_rank:,}" for name, found in measured if found]
    drawn = "; ".join(ranks)
    return Figure.of("spectrum", drawn, lambda _: loaded("audit").spectrum_chart(models))


def models_table(models: Sequence[AuditResult]) -> Table:
    """A row for each model, without its findings; what is not known is empty."""
    return Table.of(
        "models",
        models,
        title=f"{len(models)} published Transformers",
        modality=lambda result: (result.model.modality or "").replace("_", " "),
        millions=lambda result: _millions(result.model.parameters.total),
    )


def gallery_document(models: Sequence[AuditResult], version: str) -> Document:
    """Every model of the built-in table, beside what the papers say about them."""
    findings = [(result, found) for result in models for found in result.findings]
    return Document(
        title=f"{len(models)} published Transformers, audited",
        sections=(
            Section.of("", gallery_summary(models), f"Made by {version}.", is_detail=True),
            Section.of("", Table.of("claims", checked_claims(models))),
            Section.of("", gallery_figure(models), is_detail=True),
            Section.of("", _models_and_findings(models)),
            Section.of("Findings", Table.of("findings", findings), is_detail=True),
        ),
        data=[audit_json(result) for result in models],
    )


def gallery_summary(models: Sequence[AuditResult]) -> str:
    """How many models have which bottleneck."""
    counts = Counter(id_ for result in models for id_ in {found.id for found in result.findings})
    found = [f"{count} with {id_}" for id_, count in counts.most_common()]
    return f"Of {len(models)} models: {', '.join(found) or 'nothing found'}."


def gallery_figure(models: Sequence[AuditResult]) -> Figure:
    """Shapes and bottlenecks of all."""
    said = f"Depth, width and bottlenecks of {len(models)} published models"
    return Figure.of("models", said, lambda page: loaded("audit").gallery_chart(models, page))


def _models_and_findings(models: Sequence[AuditResult]) -> Table:
    """A row for each model; its findings by their short names."""
    table = models_table(models)
    short = (dict.fromkeys(SHORT[found.id] for found in result.findings) for result in models)
    return replace(
        table,
        columns=(*table.columns, "findings"),
        rows=tuple((*row, " ".join(names)) for row, names in zip(table.rows, short, strict=True)),
        narrow=("model", "depth", "width", *RATIOS, "findings"),
        sortable=True,
    )


def _millions(value: int | None) -> str:
    if value is None:
        return ""
    return f"{value / 1e6:,.0f}" if value >= 10**9 else f"{value / 1e6:.4g}"
