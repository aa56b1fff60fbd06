"""An audit as a document: what was found in a model, and the gallery of published ones."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from archfit.audit.auditor import AuditResult, audit_json, checked_claims
from archfit.audit.findings import RULES, Finding
from archfit.audit.model import UNBOUNDED
from archfit.report.document import Document, Figure, Section, Table, loaded

SHORT = {rule.id: rule.short for rule in RULES}


def audit_document(models: Sequence[AuditResult]) -> Document:
    """What `archfit audit` says of the models that were named."""
    spectra = [result for result in models if result.spectrum is not None]
    drawn = (_spectrum_figure(spectra),) if spectra else ()
    return Document(
        title=", ".join(result.model.name for result in models),
        sections=(
            *(section for result in models for section in model_sections(result)),
            Section(figures=drawn, is_detail=True),
        ),
        data=[audit_json(result) for result in models],
    )


def model_sections(result: AuditResult) -> tuple[Section, ...]:
    """Each finding with its evidence and fix, then the model's sizes and what is not known."""
    model = result.model
    remarks = [
        f"{words}: {sentence}"
        for words, sentences in (
            ("Taken from defaults", model.assumed),
            ("Not found", model.missing),
            ("Note", model.notes),
        )
        for sentence in sentences
    ]
    facts = Table(title=model.name, columns=("quantity", "value"), rows=tuple(_facts(result)))
    found = [_finding_section(model.name, finding) for finding in result.findings]
    return (
        *(found or [Section(title=model.name, sentences=(_nothing_found(result),))]),
        Section(tables=(facts,)),
        *([Section(sentences=tuple(remarks))] if remarks else []),
    )


def _finding_section(model: str, found: Finding) -> Section:
    share = "" if found.redundancy is None else f", {found.redundancy} redundant"
    return Section(
        title=f"{model}: [{found.severity}] {found.id} ({found.stack}){share}",
        sentences=(f"{found.evidence}.", f"Fix: {found.fix}."),
        status=found.severity,
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
        return f"Nothing found, but {' and '.join(missing)} cannot be judged: sizes are not known."
    return "Nothing found: no bottleneck, and a depth as good as any, as far as is known."


def _facts(result: AuditResult) -> Iterator[tuple[str, str]]:
    model, source, parts = result.model, result.model.input, result.model.parameters
    for stack in model.stacks:
        heads = f"{_whole(stack.heads)} heads of {_whole(stack.head_dim)}"
        layers = f"{_whole(stack.depth)} layers x {stack.width:,}"
        yield f"{stack.role} stack", f"{layers}, {heads} (ratio {_ratio(stack.attention_ratio)})"
    real = "" if source.vocab_real is None else f", of which {source.vocab_real:,} occur"
    yield "source", model.origin
    yield "input", source.kind.replace("_", " ")
    yield "vocabulary", f"{_whole(source.vocab)}{real}"
    yield "rank limit", f"{_whole(model.rank_limit)} of width {model.width:,}"
    if (spectrum := result.spectrum) is not None:
        above = f"values above {spectrum.tolerance:.3g}"
        yield "measured rank", f"{spectrum.numerical_rank:,} ({above})"
        yield "stable rank", f"{spectrum.stable_rank:.2f}"
        yield "effective rank", f"{spectrum.effective_rank:.2f}"
        yield "rows left out", f"{spectrum.padded_rows:,} of {spectrum.rows:,} are padding"
        yield "read", f"{spectrum.bytes_read:,} bytes: {', '.join(spectrum.tensors)}"
    split = f"{_whole(parts.blocks)} in blocks, {_whole(parts.embedding)} in tables"
    yield "parameters", f"{_whole(parts.total)} ({split})"
    if model.published_params is not None:
        yield "published", f"{model.published_params:,}"


def _spectrum_figure(models: Sequence[AuditResult]) -> Figure:
    measured = [(result.model.name, result.spectrum) for result in models]
    ranks = [f"{name}: rank {found.numerical_rank:,}" for name, found in measured if found]
    return Figure(
        name="spectrum",
        title="Spectrum of the embedding",
        caption="Singular values as a share of the largest; a rule marks the rank.",
        description="; ".join(ranks),
        chart=lambda _layout: loaded("report.charts.audit").spectrum_chart(models),
    )


# The row of a model in the gallery, without its findings; what is not known is empty.
MODEL_COLUMNS: Mapping[str, Callable[[AuditResult], str]] = {
    "model": lambda result: result.model.name,
    "modality": lambda result: (result.model.modality or "").replace("_", " "),
    "depth": lambda result: _whole(result.model.depth, ""),
    "width": lambda result: _whole(result.model.width, ""),
    "heads": lambda result: _whole(result.model.stacks[0].heads, ""),
    "head_dim": lambda result: _whole(result.model.stacks[0].head_dim, ""),
    "attention ratio": lambda result: _ratio(result.model.stacks[0].attention_ratio, ""),
    "vocabulary": lambda result: _whole(result.model.input.vocab, ""),
    "rank limit": lambda result: _whole(result.model.rank_limit, ""),
    "rank ratio": lambda result: _ratio(result.rank_ratio, ""),
    "million parameters": lambda result: _millions(result.model.parameters.total),
}


def gallery_document(models: Sequence[AuditResult], version: str) -> Document:
    """Every model of the built-in table, beside what the papers say about them."""
    return Document(
        title=f"{len(models)} published Transformers, audited",
        sections=(
            Section(sentences=(gallery_summary(models), f"Made by {version}."), is_detail=True),
            Section(tables=(claims_table(models),)),
            Section(figures=(gallery_figure(models),), is_detail=True),
            Section(tables=(_all_models(models),)),
            Section(title="Findings", tables=(_all_findings(models),), is_detail=True),
        ),
        data=[audit_json(result) for result in models],
    )


def gallery_summary(models: Sequence[AuditResult]) -> str:
    """How many models have which bottleneck."""
    counts = Counter(id_ for result in models for id_ in {found.id for found in result.findings})
    found = [f"{count} with {id_}" for id_, count in counts.most_common()]
    return f"Of {len(models)} models: {', '.join(found) or 'nothing found'}."


def claims_table(models: Sequence[AuditResult]) -> Table:
    """What Wies et al. 2021 say about published models, and what this audit finds."""
    claims = checked_claims(models)
    rows = tuple((claim.model, claim.says, claim.found, claim.verdict) for claim in claims)
    columns = ("model", "Wies et al. 2021", "this audit", "verdict")
    return Table(title="What Wies et al. 2021 say about them", columns=columns, rows=rows)


def gallery_figure(models: Sequence[AuditResult]) -> Figure:
    """Depth against width of all models, and their bottlenecks."""
    return Figure(
        name="models",
        title="Shapes and bottlenecks",
        caption="Encoder-decoders show each stack. Good depths are those of trained networks of "
        "text by size (docs/atlas.md); on other data they differ, and a finding says so. The law "
        "is a fit to networks of 6 to 48 layers and at most 0.6B; beyond it is extrapolated.",
        description=f"Depth, width and bottlenecks of {len(models)} published models",
        chart=lambda _layout: loaded("report.charts.audit").gallery_chart(models),
    )


def _all_models(models: Sequence[AuditResult]) -> Table:
    """A row for each model; its findings by their short names."""
    ratios = ("attention ratio", "rank ratio", "million parameters")
    return Table.of(
        f"{len(models)} published Transformers",
        models,
        {**MODEL_COLUMNS, "findings": _short_findings},
        narrow=("model", "depth", "width", *ratios, "findings"),
        sortable=True,
    )


def _short_findings(result: AuditResult) -> str:
    return " ".join(dict.fromkeys(SHORT[found.id] for found in result.findings))


def _all_findings(models: Sequence[AuditResult]) -> Table:
    return Table(
        title="Redundancy is a share of the parameters, as an interval, where measurements of "
        "archfit or of Wies et al. 2021 support one. Sources and caveats of each row: archfit "
        "audit NAME --json",
        columns=("model", "finding", "severity", "redundancy", "evidence", "fix"),
        rows=tuple(
            (result.model.name, found.id, found.severity, str(found.redundancy or ""),
             found.evidence, found.fix)
            for result in models
            for found in result.findings
        ),
        sortable=True,
    )  # fmt: skip


def _whole(value: int | None, unknown: str = "?") -> str:
    return unknown if value is None else f"{value:,}"


def _ratio(value: float | None, unknown: str = "?") -> str:
    return unknown if value is None else f"{value:.3g}"


def _millions(value: int | None) -> str:
    if value is None:
        return ""
    return f"{value / 1e6:,.0f}" if value >= 10**9 else f"{value / 1e6:.4g}"
