"""An audit: from a word on the command line, or a model, to what was found in it, and its JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from archfit.audit.checkpoint_file import read_checkpoint
from archfit.audit.checkpoint_model import disagreements, model_from_header
from archfit.audit.config import model_from_config
from archfit.audit.embedding_spectrum import EmbeddingSpectrum, measure_embedding
from archfit.audit.embedding_tensor import find_embedding
from archfit.audit.findings import Finding, findings_of
from archfit.audit.model import Model, model_from_architecture
from archfit.audit.targets import KnownModel, ModelFiles, Target, TrainedRun, find_target
from archfit.audit.zoo import zoo_model, zoo_names
from archfit.spec import RunSpec, load_file
from archfit.spec.bounded_json import read_object
from archfit.spec.files import LARGEST_SPEC

MOST_CONFIG_BYTES = 16 * 10**6  # some list their labels; none of those seen has 1 MB
Json = dict[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditResult:
    """A model with what was found in it."""

    model: Model
    spectrum: EmbeddingSpectrum | None  # None: the weights were not looked at
    findings: tuple[Finding, ...]

    @property
    def rank_ratio(self) -> float | None:
        """Embedding rank over width: what was measured, or what the input allows."""
        limit = self.model.rank_limit if self.spectrum is None else self.spectrum.numerical_rank
        return None if limit is None else limit / self.model.width


def audit_model(model: Model, spectrum: EmbeddingSpectrum | None = None) -> AuditResult:
    """The model with its findings."""
    rank = None if spectrum is None else spectrum.numerical_rank
    findings = findings_of(model, measured_rank=rank)
    return AuditResult(model=model, spectrum=spectrum, findings=findings)


def audit_target(word: str, *, measure: bool, environment: Mapping[str, str]) -> AuditResult:
    """The model that the word means, with its findings; `measure` reads its embedding, too."""
    target = find_target(word, known=zoo_names(), environment=environment)
    model = _model(target)
    has_document = not isinstance(target, ModelFiles) or target.config is not None
    if not isinstance(target, KnownModel) and has_document and target.checkpoint is not None:
        model = replace(model, notes=model.notes + disagreements(model, target.checkpoint))
    return audit_model(model, _spectrum(target) if measure else None)


def _model(target: Target) -> Model:
    match target:
        case KnownModel():
            return zoo_model(target.id)
        case TrainedRun():
            shape = load_file(RunSpec, target.spec, most_bytes=LARGEST_SPEC).architecture
            return model_from_architecture(shape, name=target.name, origin=str(target.spec))
        case ModelFiles(config=None):
            path = target.weights()
            return model_from_header(read_checkpoint(path), name=target.name, origin=str(path))
        case ModelFiles():
            assert target.config is not None
            document = read_object(target.config, most_bytes=MOST_CONFIG_BYTES)
            return model_from_config(document, name=target.name, origin=str(target.config))


def _spectrum(target: Target) -> EmbeddingSpectrum:
    if isinstance(target, KnownModel):
        raise ValueError(
            f"--weights needs a checkpoint, and {target.id} is a row of the built-in table; give "
            "a folder, a .safetensors file or org/name in the Hugging Face cache"
        )
    path = target.weights() if isinstance(target, ModelFiles) else target.checkpoint
    if path is None:
        raise ValueError(f"{target.name} has no weights yet; --weights needs a finished run")
    return measure_embedding(find_embedding(read_checkpoint(path)))


def audit_json(result: AuditResult) -> Json:
    """The document of one model."""
    model, first, spectrum = result.model, result.model.stacks[0], result.spectrum
    findings = [asdict(finding) for finding in result.findings]
    for share in (finding["redundancy"] for finding in findings if finding["redundancy"]):
        del share["source"]  # the evidence names it
    measured: Json | None = None
    if spectrum is not None:
        points = [{"index": index, "singular_value": value} for index, value in spectrum.points()]
        measured = asdict(spectrum) | {"tensors": list(spectrum.tensors), "singular_values": points}
        del measured["width"]
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
        "rank_ratio": _rounded(result.rank_ratio),
        "params": model.parameters.total,
        "params_parts": asdict(model.parameters),
        "params_published": model.published_params,
        "tied": model.is_tied,
        "stacks": [asdict(stack) | {"attention_ratio": _rounded(stack.attention_ratio)}
                   for stack in model.stacks],
        "spectrum": measured,
        "findings": findings,
        "assumed": list(model.assumed),
        "missing": list(model.missing),
        "notes": list(model.notes),
    }  # fmt: skip


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 6)
