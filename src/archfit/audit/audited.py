"""A model with what was found in it, and both as one JSON document."""

from dataclasses import asdict, dataclass

from archfit.audit.embedding_spectrum import EmbeddingSpectrum
from archfit.audit.findings import Finding, findings_of
from archfit.audit.model import Model
from archfit.plan.document import interval_json

Json = dict[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Audited:
    """One model of an audit."""

    model: Model
    spectrum: EmbeddingSpectrum | None  # None: the weights were not looked at
    findings: tuple[Finding, ...]

    @property
    def rank_ratio(self) -> float | None:
        """Embedding rank over width: what was measured, or what the input allows."""
        limit = self.model.rank_limit
        if self.spectrum is not None:
            limit = self.spectrum.numerical_rank
        return None if limit is None else limit / self.model.width


def audited(model: Model, spectrum: EmbeddingSpectrum | None = None) -> Audited:
    """The model with its findings."""
    rank = None if spectrum is None else spectrum.numerical_rank
    return Audited(model=model, spectrum=spectrum, findings=findings_of(model, measured_rank=rank))


def audit_json(one: Audited) -> Json:
    """The document of one model."""
    model, first, spectrum = one.model, one.model.stacks[0], one.spectrum
    return {
        "name": model.name,
        "origin": model.origin,
        "family": model.family,
        "modality": model.modality,
        "depth": model.depth,
        "width": model.width,
        "heads": first.heads,
        "head_dim": first.head_dim,
        "kv_heads": first.kv_heads,
        "attention_ratio": _rounded(first.attention_ratio),
        "vocab": model.input.vocab,
        "vocab_real": model.input.vocab_real,
        "input": model.input.kind,
        "embedding_rank_limit": model.rank_limit,
        "embedding_rank_measured": None if spectrum is None else spectrum.numerical_rank,
        "rank_ratio": _rounded(one.rank_ratio),
        "params": model.parameters.total,
        "params_parts": asdict(model.parameters),
        "params_published": model.published_params,
        "tied": model.is_tied,
        "stacks": [asdict(stack) | {"attention_ratio": _rounded(stack.attention_ratio)}
                   for stack in model.stacks],
        "spectrum": None if spectrum is None else _spectrum(spectrum),
        "findings": [finding_json(finding) for finding in one.findings],
        "assumed": list(model.assumed),
        "missing": list(model.missing),
        "notes": list(model.notes),
    }  # fmt: skip


def finding_json(finding: Finding) -> Json:
    """The document of one finding."""
    share = finding.redundancy
    return {
        "id": finding.id,
        "severity": finding.severity,
        "stack": finding.stack,
        "redundancy": None if share is None else interval_json(share),
        "evidence": finding.evidence,
        "fix": finding.fix,
    }


def _spectrum(spectrum: EmbeddingSpectrum) -> Json:
    points = [{"index": index, "singular_value": value} for index, value in spectrum.points()]
    return {
        "tensors": list(spectrum.tensors),
        "rows": spectrum.rows,
        "padded_rows": spectrum.padded_rows,
        "numerical_rank": spectrum.numerical_rank,
        "tolerance": spectrum.tolerance,
        "stable_rank": spectrum.stable_rank,
        "effective_rank": spectrum.effective_rank,
        "bytes_read": spectrum.bytes_read,
        "singular_values": points,
    }


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 6)
