"""An audit: from a word on the command line, or a model, to what was found in it.

And what the papers say about published models, beside what the audit of those models says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from archfit.advise.redundancy import READING
from archfit.audit.checkpoint_file import TENSORS, read_checkpoint
from archfit.audit.checkpoint_model import disagreements, model_from_header
from archfit.audit.config import model_from_config
from archfit.audit.embedding import EmbeddingSpectrum, find_embedding, measure_embedding
from archfit.audit.findings import WORDS, Finding, findings_of
from archfit.audit.model import Model
from archfit.audit.targets import INDEX, find_target
from archfit.audit.zoo import zoo_model
from archfit.spec.errors import refusal
from archfit.spec.files import CONFIG, read_object
from archfit.theory.law import WEIGHTS, ideal_shape

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
    path = target.description or target.weights()
    if target.description is None:
        model = model_from_header(read_checkpoint(path), name=target.name, origin=str(path))
    else:
        document = read_object(path, most_bytes=MOST_CONFIG_BYTES)
        model = model_from_config(document, name=target.name, origin=str(path))
        if target.checkpoint is not None:
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
        raise refusal("no-model", kind=type(given).__name__)
    built = {} if config is given else {"architectures": [type(given).__name__]}
    named = document.get("_name_or_path") or getattr(config, "name_or_path", "")
    name = next((str(each) for each in (named, document.get("model_type")) if each), "config")
    return audit_model(model_from_config({**document, **built}, name=name, origin="a config"))


# ---- claims of the papers


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A sentence of Wies et al. 2021 about a model, checked."""

    model: str
    says: str
    found: str
    verdict: str  # reproduced, corrected, or resting on the paper's number: and why


def checked_claims(models: Iterable[AuditResult]) -> tuple[Claim, ...]:
    """All that `findings.toml` has, for the models of the built-in table."""
    by_name = {result.model.name: result for result in models}
    return tuple(_checked(by_name[name], claim) for name, claim in WORDS["claims"].items())


def _checked(result: AuditResult, claim: Mapping[str, Any]) -> Claim:
    """About a redundant share, the rank of the input, or the depth that suits the size."""
    model, verdicts = result.model, WORDS["verdicts"]
    if "share" in claim:
        found, name = _redundancy(result, claim["share"])
        verdict = verdicts[name].format(share=100 * claim["share"], reading=100 * READING)
        return Claim(model=model.name, says=claim["says"], found=found, verdict=verdict)
    size = WEIGHTS * (model.depth or 0) * model.width**2
    law = ideal_shape(size, model.rank_limit or model.width)
    is_so = abs(law.depth / claim["depth"] - 1) < 0.05 if "depth" in claim else True
    is_so = is_so and model.rank_limit == claim.get("rank", model.rank_limit)
    found = claim["found"].format(model=model, law=law, millions=size / 1e6)
    verdict = claim["so" if is_so else "else"].format(params=(model.published_params or 0) / 1e6)
    return Claim(model=model.name, says=claim["says"], found=found, verdict=verdict)


def _redundancy(result: AuditResult, share: float) -> tuple[str, str]:
    """What was found, and the verdict: a number of the paper cannot confirm what it says."""
    shares = [finding.redundancy for finding in result.findings if finding.redundancy]
    worst = max(shares, key=lambda found: found.middle, default=None)
    if worst is None:
        return "no finding", "not-shallow"
    found = f"{worst} redundant, {worst.basis}"
    if not worst.low <= share <= worst.high:
        return found, "outside"
    if "paper" not in worst.basis:
        return found, "ours"
    return found, "both" if "archfit" in worst.basis else "papers"
