"""An audit: from a word on the command line, or a model, to what was found in it.

And what the papers say about published models, beside what the audit of those models says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from archfit.advise.law import WEIGHTS, ideal_shape
from archfit.advise.redundancy import READING
from archfit.audit.checkpoint_file import TENSORS, read_checkpoint
from archfit.audit.checkpoint_model import disagreements, model_from_header
from archfit.audit.config import model_from_config
from archfit.audit.embedding import EmbeddingSpectrum, find_embedding, measure_embedding
from archfit.audit.findings import Finding, findings_of
from archfit.audit.model import Model
from archfit.audit.targets import INDEX, ModelFiles, find_target
from archfit.audit.zoo import zoo_model
from archfit.spec.errors import refusal
from archfit.spec.files import CONFIG, read_object

MOST_CONFIG_BYTES = 16 * 10**6  # some list their labels; none of those seen has 1 MB


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


def audit_target(
    word: str, *, measure: bool, environment: Mapping[str, str], download: bool = False
) -> AuditResult:
    """The model that the word means, with its findings; `measure` reads its embedding, too, and
    `download` lets an org/name come from Hugging Face: its config, and weights only to measure."""
    wanted = (CONFIG, *([f"model*{TENSORS}", INDEX] if measure else []))
    target = find_target(word, environment=environment, download=wanted if download else ())
    if isinstance(target, str):
        if measure:
            raise refusal("weights-of-a-row", target=target)
        return audit_model(zoo_model(target))
    model = _model(target)
    if (target.spec or target.config) and target.checkpoint is not None:
        model = replace(model, notes=model.notes + disagreements(model, target.checkpoint))
    if not measure:
        return audit_model(model)
    return audit_model(model, measure_embedding(find_embedding(read_checkpoint(target.weights()))))


def audit_config(given: object) -> AuditResult:
    """A config of transformers, a model of it, or what either's `to_dict()` gives, with its
    findings. Nothing is imported for it and no weight is read: a model is judged by its config.
    """
    config = getattr(given, "config", given)
    to_dict = getattr(config, "to_dict", None)
    document = to_dict() if callable(to_dict) else config
    if not isinstance(document, Mapping):
        way_out = "give a path, a name, a config or model of transformers, or a dictionary"
        raise ValueError(f"nothing of type {type(given).__name__} can be audited; {way_out}")
    built = {} if config is given else {"architectures": [type(given).__name__]}
    named = document.get("_name_or_path") or getattr(config, "name_or_path", "")
    name = next((str(each) for each in (named, document.get("model_type")) if each), "config")
    return audit_model(model_from_config({**document, **built}, name=name, origin="a config"))


def _model(files: ModelFiles) -> Model:
    if (described := files.spec or files.config) is not None:
        document = read_object(described, most_bytes=MOST_CONFIG_BYTES)
        return model_from_config(document, name=files.name, origin=str(described))
    path = files.weights()
    return model_from_header(read_checkpoint(path), name=files.name, origin=str(path))


# ---- claims of the papers

NOT_SHALLOW = (
    "corrected: few tokens are a finding in a network that is too shallow, and this one is not"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A sentence of Wies et al. 2021 about a model, checked."""

    model: str
    says: str
    found: str
    verdict: str  # reproduced, corrected, or resting on the paper's number: and why


REDUNDANT = {  # what the paper says is redundant of a model, and how much
    "ALBERT-xxlarge-v1": ("rank 128 of 4096: 25 % redundant", 0.25),
    "ESM-1b": ("33 tokens at width 1280: likewise", 0.25),
    "T5-3B": ("heads 4 times the width: about 25 % redundant", 0.25),
    "T5-11B": ("heads 16 times the width: about 45 % redundant", 0.45),
}


def checked_claims(models: Iterable[AuditResult]) -> tuple[Claim, ...]:
    """All six, for the models of the built-in table."""
    by_name = {result.model.name: result for result in models}
    claims = [_redundancy(by_name[name], *claim) for name, claim in REDUNDANT.items()]
    vision, sparse = (by_name[it].model for it in ("ViT-H/14", "Sparse Transformer, CIFAR-10"))
    corrected = "corrected: the public model has patches of 14 x 14 x 3, a tighter bottleneck"
    patches = Claim(
        model=vision.name,
        says="input rank 768 (patches of 16 x 16 x 3) at width 1280: a bottleneck",
        found=f"input rank {vision.rank_limit} at width {vision.width}",
        verdict="reproduced" if vision.rank_limit == 768 else corrected,
    )
    size = WEIGHTS * (sparse.depth or 0) * sparse.width**2
    law = ideal_shape(size, sparse.rank_limit or sparse.width)
    verdict = "reproduced" if abs(law.depth / 128 - 1) < 0.05 else "corrected"
    shape = Claim(
        model=sparse.name,
        says="128 layers at the size of BERT-Base, because of 256 pixel values",
        found=f"the law gives {law.depth:.0f} x {law.width:.0f} for 12 L d^2 = {size / 1e6:.0f}M",
        verdict=f"{verdict} in shape; its {(sparse.published_params or 0) / 1e6:.0f}M parameters "
        "(projections of half size) are fewer than the 85M in BERT-Base's blocks",
    )
    return (*claims, patches, shape)


def _redundancy(result: AuditResult, says: str, share: float) -> Claim:
    """A number that was taken from the paper cannot confirm what the paper says."""
    shares = [finding.redundancy for finding in result.findings if finding.redundancy]
    worst = max(shares, key=lambda found: found.middle, default=None)
    found = "no finding" if worst is None else f"{worst} redundant, {worst.basis}"
    if worst is None:
        verdict = NOT_SHALLOW
    elif not worst.low <= share <= worst.high:
        verdict = "corrected"
    elif "paper" not in worst.basis:
        verdict = f"reproduced by our runs: their {100 * share:.0f} % lie inside"
    else:
        point = f"the paper's own point, {100 * share:.0f} % plus or minus {100 * READING:.0f}"
        ours = ", with our runs beside it" if "archfit" in worst.basis else ""
        verdict = f"the shape is as they say; the share rests on {point}{ours}"
    return Claim(model=result.model.name, says=says, found=found, verdict=verdict)
