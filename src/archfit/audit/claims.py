"""What the papers say about published models, beside what the audit of those models says."""

from collections.abc import Iterable
from dataclasses import dataclass

from archfit.advise.law import WEIGHTS, ideal_shape
from archfit.advise.redundancy import READING, Redundancy
from archfit.audit.auditor import AuditResult

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


def checked_claims(models: Iterable[AuditResult]) -> tuple[Claim, ...]:
    """All six, for the models of the built-in table."""
    by_name = {result.model.name: result for result in models}
    return (
        _redundancy(by_name["ALBERT-xxlarge-v1"], "rank 128 of 4096: 25 % redundant", 0.25),
        _redundancy(by_name["ESM-1b"], "33 tokens at width 1280: likewise", 0.25),
        _redundancy(by_name["T5-3B"], "heads 4 times the width: about 25 % redundant", 0.25),
        _redundancy(by_name["T5-11B"], "heads 16 times the width: about 45 % redundant", 0.45),
        _vit_huge(by_name["ViT-H/14"]),
        _sparse_transformer(by_name["Sparse Transformer, CIFAR-10"]),
    )


def _redundancy(result: AuditResult, says: str, share: float) -> Claim:
    shares = [finding.redundancy for finding in result.findings if finding.redundancy]
    worst = max(shares, key=lambda found: found.middle, default=None)
    return Claim(
        model=result.model.name,
        says=says,
        found="no finding" if worst is None else f"{worst} redundant, {worst.basis}",
        verdict=NOT_SHALLOW if worst is None else _verdict(worst, share),
    )


def _verdict(found: Redundancy, share: float) -> str:
    """A number that was taken from the paper cannot confirm what the paper says."""
    if not found.low <= share <= found.high:
        return "corrected"
    if "paper" not in found.basis:
        return f"reproduced by our runs: their {share:.0%} lie inside"
    point = f"the paper's own point, {share:.0%} plus or minus {100 * READING:.0f}"
    ours = ", with our runs beside it" if "archfit" in found.basis else ""
    return f"the shape is as they say; the share rests on {point}{ours}"


def _vit_huge(result: AuditResult) -> Claim:
    limit = result.model.rank_limit
    corrected = "corrected: the public model has patches of 14 x 14 x 3, a tighter bottleneck"
    return Claim(
        model=result.model.name,
        says="input rank 768 (patches of 16 x 16 x 3) at width 1280: a bottleneck",
        found=f"input rank {limit} at width {result.model.width}",
        verdict="reproduced" if limit == 768 else corrected,
    )


def _sparse_transformer(result: AuditResult) -> Claim:
    depth, width = result.model.depth or 0, result.model.width
    size = WEIGHTS * depth * width**2
    law = ideal_shape(size, result.model.rank_limit or width)
    published = result.model.published_params or 0
    return Claim(
        model=result.model.name,
        says="128 layers at the size of BERT-Base, because of 256 pixel values",
        found=f"the law gives {law.depth:.0f} x {law.width:.0f} for 12 L d^2 = {size / 1e6:.0f}M",
        verdict=("reproduced" if abs(law.depth / 128 - 1) < 0.05 else "corrected")
        + f" in shape; its {published / 1e6:.0f}M parameters (projections of half size) are fewer "
        "than the 85M in BERT-Base's blocks",
    )
